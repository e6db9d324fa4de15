use std::time::Duration;

/// What a benchmark was asked for.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Run everything for a moment, to see that it works.
    pub(crate) quick: bool,
    /// How long each row may take.
    pub(crate) time: Duration,
    /// Only rows that have one of these words in their names.
    pub(crate) words: Vec<String>,
}

const USAGE: &str = "usage: cargo bench --bench NAME -- [--test] [--seconds N] [WORD...]

  --test       run everything for a moment, to see that it works; the figures mean nothing
  --seconds N  for each row, instead of what the benchmark thinks right
  WORD         only rows that have it in their names";

impl Options {
    /// Reads the program's arguments. Ends the program if they are wrong.
    pub(crate) fn parse(time: Duration) -> Self {
        Options::read(std::env::args().skip(1), time).unwrap_or_else(|wrong| {
            eprintln!("{wrong}\n{USAGE}");
            std::process::exit(if wrong.is_empty() { 0 } else { 2 })
        })
    }

    fn read(arguments: impl IntoIterator<Item = String>, time: Duration) -> Result<Self, String> {
        let mut options = Options { quick: true, time, words: Vec::new() };
        let mut test = false;
        let mut arguments = arguments.into_iter();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                // `cargo bench` says this; `cargo test`, which only wants to see that it works, does not.
                "--bench" => options.quick = false,
                "--test" => test = true,
                "--seconds" => {
                    let seconds = arguments.next().and_then(|text| text.parse().ok());
                    let time = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
                    options.time = time.ok_or("--seconds takes a number")?;
                }
                "--help" | "-h" => return Err(String::new()),
                flag if flag.starts_with('-') => return Err(format!("there is no option {flag}")),
                word => options.words.push(word.to_owned()),
            }
        }
        options.quick |= test;
        Ok(options)
    }

    /// Whether a row of this name is wanted.
    pub(crate) fn wants(&self, name: &str) -> bool {
        self.words.is_empty() || self.words.iter().any(|word| name.contains(word.as_str()))
    }
}
