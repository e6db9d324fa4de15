# Sourced by the check scripts: Debian's current rustc, unpacked into a cache folder.
#
# Debian has it for its browser (bookworm: rustc-web and relatives), with the sources of exactly its standard library and
# of what that depends on. rustup's toolchains come without; so this is the compiler for what needs another standard
# library: one for macOS (ci/darwin), one that is instrumented (ci/sanitizers). Nothing is installed.
#
# The folder is ${RDMA_DARWIN_CACHE:-~/.cache/rdma-darwin}; it stays as it is until it is removed, so that the same compiler
# checks every commit.

cache=${RDMA_DARWIN_CACHE:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rdma-darwin}
compiler=$cache/compiler

fail() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# The candidate version of a package, nothing if the lists do not know it.
candidate() {
    apt-cache policy "$1" | sed -n 's/^  Candidate: //p' | grep -v '^(none)$' || true
}

# Fetches the files of packages, and of those that they depend on and this machine lacks, into a folder.
fetch() {
    local folder=$1 line name version
    shift
    # A simulation, which needs no rights: quoted address, file name, size, hash.
    apt-get install --print-uris -qq -y --reinstall --no-install-recommends "$@" | grep "^'" >"$folder/list"
    while read -r _ line _; do
        # name_version_architecture.deb, with the version's colon encoded
        name=${line%%_*}
        version=${line#*_}
        version=${version%_*}
        (cd "$folder" && apt-get download -qq -o APT::Sandbox::User=root "$name=${version//%3a/:}")
    done <"$folder/list"
}

unpack_compiler() {
    command -v apt-get dpkg-deb >/dev/null || fail "needs a Debian system"
    if [ -z "$(candidate rustc-web)" ]; then
        [ "$(id -u)" -ne 0 ] || apt_update
        [ -n "$(candidate rustc-web)" ] || fail "the package lists know no rustc-web"
    fi
    local new=$compiler.new standard llvm
    rm -rf -- "$new"
    mkdir -p "$new/packages"
    # The host's standard library is a package of a versioned name, and so is LLVM, of which the newest will do.
    standard=$(apt-cache depends libstd-rust-web-dev | sed -n '0,/^ *Depends: \(libstd-rust-web-[0-9.]*\)$/s//\1/p')
    llvm=$(apt-cache pkgnames lld- | sed -n 's/^lld-\([0-9]*\)$/\1/p' | sort -n | tail -n 1)
    echo "fetching rustc $(candidate rustc-web) and LLVM $llvm"
    fetch "$new/packages" rustc-web cargo-web rust-web-clippy rust-web-src libstd-rust-web-dev "$standard" \
        "lld-$llvm" "clang-$llvm" "libclang-rt-$llvm-dev" "llvm-$llvm"
    local package
    for package in "$new"/packages/*.deb; do
        case ${package##*/} in
            # Of the compiler's whole source only the standard library.
            rust-web-src_*)
                dpkg-deb --fsys-tarfile "$package" |
                    tar -x -C "$new" --wildcards './usr/src/rustc-*/library' './usr/lib/rustlib/src*'
                ;;
            *) dpkg-deb -x "$package" "$new" ;;
        esac
    done
    rm -rf -- "$new/packages" "$new/usr/share"
    echo "$llvm" >"$new/llvm"
    # By its name rustc knows how to talk to it.
    printf '#!/bin/sh\nexec "%s"/usr/lib/llvm-%s/bin/lld "$@"\n' "$compiler" "$llvm" >"$new/rust-lld"
    # Freestanding, because there are no headers of the system here: what needs them does not compile.
    printf '#!/bin/sh\nexec "%s"/usr/lib/llvm-%s/bin/clang --target=arm64-apple-macos -ffreestanding "$@"\n' \
        "$compiler" "$llvm" >"$new/clang"
    chmod +x "$new/rust-lld" "$new/clang"
    mv -- "$new" "$compiler"
}

# The environment in which the unpacked compiler works, and no other is found.
use_compiler() {
    export LD_LIBRARY_PATH=$compiler/usr/lib/x86_64-linux-gnu
    export PATH=$compiler/usr/bin:$PATH
    export CARGO=$compiler/usr/bin/cargo RUSTC=$compiler/usr/bin/rustc RUSTDOC=$compiler/usr/bin/rustdoc
    unset RUSTUP_TOOLCHAIN RUSTC_BOOTSTRAP RUSTC_WRAPPER RUSTFLAGS CARGO_ENCODED_RUSTFLAGS
}

# One at a time from here to `leave_cache`; a second run waits for the first one's work and uses it.
enter_cache() {
    [ "$(uname -sm)" = 'Linux x86_64' ] || fail "is made for x86-64 Linux"
    mkdir -p "$cache"
    exec 9>"$cache/lock"
    flock 9
    [ -d "$compiler" ] || unpack_compiler
    use_compiler
}

leave_cache() {
    exec 9>&-
}
