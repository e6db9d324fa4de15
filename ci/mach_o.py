#!/usr/bin/env python3
"""What the Mach-O files of a build load.

    mach_o.py MESSAGES   the file has cargo's JSON messages; each program and shared library that they name is looked at
    mach_o.py --test     whether this script can tell right from wrong

Fails if a file is not for macOS on arm64, or loads a library that is not on the list below: librdma above all, which is
looked up at run time because most Macs do not have it.
"""

import json
import struct
import sys

MAY_BE_LOADED = {"/usr/lib/libSystem.B.dylib", "/usr/lib/libiconv.2.dylib"}

MAGIC_64 = 0xFEEDFACF
CPU_ARM64 = 0x0100000C
LC_BUILD_VERSION = 0x32
PLATFORM_MACOS = 1
# Load, weak load, re-export, lazy load, upward load: in each the name's offset is the third word.
LOADS = {0xC: "", 0x80000018: "weakly ", 0x8000001F: "to re-export it ", 0x20: "lazily ", 0x80000023: "upwards "}


class Wrong(Exception):
    pass


def look(data):
    """What a file loads. Raises Wrong for what it should not, and for a file that is not what it should be."""
    magic, cpu, _, _, count = struct.unpack_from("<5I", data)
    if magic != MAGIC_64 or cpu != CPU_ARM64:
        raise Wrong("is not a Mach-O file for arm64")
    at, platforms, loads = 32, [], []
    for _ in range(count):
        command, size = struct.unpack_from("<2I", data, at)
        if size < 8 or at + size > len(data):
            raise Wrong("has a load command that does not fit")
        if command == LC_BUILD_VERSION:
            platforms.append(struct.unpack_from("<I", data, at + 8)[0])
        if command in LOADS:
            (offset,) = struct.unpack_from("<I", data, at + 8)
            name = data[at + offset : at + size].split(b"\0")[0].decode()
            if name not in MAY_BE_LOADED:
                raise Wrong(f"loads {LOADS[command]}{name}")
            loads.append(name)
        at += size
    if platforms != [PLATFORM_MACOS]:
        raise Wrong(f"is for the platforms {platforms}")
    return loads


def files(messages):
    """Programs and shared libraries for the target. Those for the host, procedural macros, are ELF and not of interest."""
    for line in messages:
        message = json.loads(line)
        if message.get("reason") != "compiler-artifact" or "proc-macro" in message["target"]["kind"]:
            continue
        if "custom-build" in message["target"]["kind"]:
            continue
        name = "{} {}".format(message["target"]["kind"][0], message["target"]["name"])
        if message.get("executable"):
            yield name, message["executable"]
        for path in message["filenames"]:
            if path.endswith(".dylib"):
                yield name, path


def made(*commands, cpu=CPU_ARM64):
    """A Mach-O file of load commands alone."""
    return struct.pack("<8I", MAGIC_64, cpu, 0, 2, len(commands), sum(map(len, commands)), 0, 0) + b"".join(commands)


def test():
    platform = struct.pack("<6I", LC_BUILD_VERSION, 24, PLATFORM_MACOS, 0, 0, 0)

    def load(name, command=0xC):
        text = name.encode().ljust(len(name) // 8 * 8 + 8, b"\0")
        return struct.pack("<6I", command, 24 + len(text), 24, 0, 0, 0) + text

    system = load("/usr/lib/libSystem.B.dylib")
    assert look(made(system, platform)) == ["/usr/lib/libSystem.B.dylib"]
    wrong = [
        made(system, platform, load("/usr/lib/librdma.dylib")),
        made(load("/usr/lib/librdma.dylib", 0x80000018), system, platform),
        made(system, load("@rpath/librdma.dylib", 0x20), platform),
        made(system),
        made(system, platform, cpu=7),
        made(system, platform)[:60],
    ]
    for data in wrong:
        try:
            look(data)
        except Wrong:
            continue
        raise AssertionError("a wrong file passed")


def main(argument):
    if argument == "--test":
        return test()
    seen = wrong = 0
    with open(argument) as messages:
        for name, path in files(messages):
            with open(path, "rb") as file:
                data = file.read()
            seen += 1
            try:
                look(data)
            except Wrong as reason:
                wrong += 1
                print(f"{name} ({path}): {reason}")
    print(f"{seen} Mach-O files for arm64 linked, {wrong} of them wrong")
    # None at all means that nothing was looked at.
    return 1 if wrong or not seen else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
