//! The exported calls as C sees them, read from the text of the table in `src/verbs.rs`: whoever changes a call there
//! changes what is checked here.

/// One call of the table.
pub(crate) struct Call {
    pub(crate) symbol: &'static str,
    pub(crate) required: bool,
    /// The C spelling of the returned type.
    pub(crate) returned: String,
    /// The C spellings of the arguments' types.
    pub(crate) arguments: Vec<String>,
}

/// Every call, in the order of the table. Panics on a line that it does not understand, so that none is left out.
pub(crate) fn calls() -> Vec<Call> {
    let text = include_str!("../../src/verbs.rs");
    let mut calls = Vec::new();
    let mut required = None;
    for line in text.lines().map(str::trim).skip_while(|line| *line != "table! {").skip(1) {
        match line {
            "required {" => required = Some(true),
            "optional {" => required = Some(false),
            "}" if required.is_none() => break,
            "}" => required = None,
            _ if line.is_empty() || line.starts_with("///") => {}
            _ => {
                let required = required.unwrap_or_else(|| panic!("src/verbs.rs: outside a list: {line}"));
                calls.push(parse(line, required).unwrap_or_else(|| panic!("src/verbs.rs: cannot read: {line}")));
            }
        }
    }
    calls
}

/// Reads `field: "ibv_field", fn(type, type) -> type;`.
fn parse(line: &'static str, required: bool) -> Option<Call> {
    let (field, rest) = line.strip_suffix(';')?.split_once(": \"")?;
    let (symbol, rest) = rest.split_once("\", fn(")?;
    assert_eq!(symbol, format!("ibv_{field}"), "src/verbs.rs: a field is named after its symbol");
    let (arguments, returned) = rest.split_once(')')?;
    Some(Call {
        symbol,
        required,
        returned: returned.strip_prefix(" -> ").map_or("void".into(), c_type),
        arguments: arguments.split(", ").filter(|argument| !argument.is_empty()).map(c_type).collect(),
    })
}

/// The C spelling of a Rust type of the table.
pub(crate) fn c_type(rust: &str) -> String {
    if let Some(inner) = rust.strip_prefix("*mut ") {
        let inner = c_type(inner);
        return if inner.ends_with('*') { format!("{inner}*") } else { format!("{inner} *") };
    }
    if let Some(inner) = rust.strip_prefix("*const ") {
        return format!("const {} *", c_type(inner));
    }
    match rust {
        "c_int" => "int".into(),
        "c_uint" => "unsigned int".into(),
        "c_char" => "char".into(),
        "c_void" => "void".into(),
        "u8" => "uint8_t".into(),
        "u16" => "uint16_t".into(),
        "u32" => "uint32_t".into(),
        "u64" => "uint64_t".into(),
        "usize" => "size_t".into(),
        // What our own header declares a type to be, that C's keyword is. The probe finds out if the header is wrong.
        _ => ["struct", "union", "enum"]
            .into_iter()
            .map(|keyword| format!("{keyword} {rust}"))
            .find(|name| super::HEADER.contains(&format!("{name} {{")))
            .unwrap_or_else(|| panic!("no C spelling is known for the type {rust}")),
    }
}
