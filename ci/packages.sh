# Sourced by the check scripts: installing what is missing, through apt-get.
#
# Nothing is done where all is there, and `apt-get update` runs once at most, when the first missing package is found.
# On a system without apt-get (macOS) what is installed has to do.

apt_updated=no

# Whether a package is installed.
is_installed() {
    [[ $(dpkg-query -W -f '${db:Status-Abbrev}' "$1" 2>/dev/null) == ii* ]]
}

apt() {
    DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 "$@" </dev/null
}

# Refreshes the lists, the first time only.
apt_update() {
    [ "$apt_updated" = no ] || return 0
    apt update
    apt_updated=yes
}

# Installs those of the named packages that are missing.
install_missing() {
    command -v apt-get >/dev/null || { echo "no apt-get here: not installing $*"; return 0; }
    local package missing=()
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    [ "${#missing[@]}" -gt 0 ] || return 0
    if [ "$(id -u)" -ne 0 ]; then
        echo "missing packages: ${missing[*]}; install them, or run this as root" >&2
        return 1
    fi
    echo "installing ${missing[*]}"
    apt_update
    apt install -y --no-install-recommends "${missing[@]}" >/dev/null
}

# Installs libclang with its own headers, in the release's default version, unless some version is there. The package
# libclang-dev would bring both as well, with a few hundred megabytes that bindgen has no use for.
install_libclang() {
    command -v apt-get >/dev/null || { echo "no apt-get here: not installing libclang"; return 0; }
    local version
    for version in $(dpkg-query -W -f '${Package}\n' 'libclang-common-*-dev' 2>/dev/null | grep -o '[0-9]\+'); do
        if is_installed "libclang1-$version" && is_installed "libclang-common-$version-dev"; then
            return 0
        fi
    done
    [ "$(id -u)" -ne 0 ] || apt_update
    version=$(apt-cache depends libclang-dev | sed -n '0,/^ *Depends: libclang-\([0-9]*\)-dev$/s//\1/p')
    [ -n "$version" ] || {
        echo "the package lists know no libclang" >&2
        return 1
    }
    install_missing "libclang1-$version" "libclang-common-$version-dev"
}
