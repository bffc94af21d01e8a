# What others call a processor; for the scripts beside this one, which source it.

# Cargo's target, whose binary is static: by musl, but on armv7 by glibc, whose standard library rustup has everywhere.
target_of() {
	case "$1" in
	x86_64 | aarch64) echo "$1-unknown-linux-musl" ;;
	armv7) echo armv7-unknown-linux-gnueabihf ;;
	*) echo "error: processor $1 is none of x86_64, aarch64, armv7" >&2 && return 1 ;;
	esac
}

# Cargo's target for what other programs load, and so is linked with their libc.
shared_target_of() {
	case "$1" in
	armv7) echo armv7-unknown-linux-gnueabihf ;;
	*) echo "$1-unknown-linux-gnu" ;;
	esac
}

# GCC as a linker for that, as Debian calls it.
gcc_of() {
	case "$1" in
	armv7) echo arm-linux-gnueabihf-gcc ;;
	*) echo "$1-linux-gnu-gcc" ;;
	esac
}

debian_of() {
	case "$1" in
	x86_64) echo amd64 ;;
	aarch64) echo arm64 ;;
	armv7) echo armhf ;;
	esac
}

# What runs its programs on this machine: nothing for this machine's own.
emulator_of() {
	[ "$1" = "$(uname -m)" ] && return
	case "$1" in
	armv7) echo qemu-arm-static ;;
	*) echo "qemu-$1-static" ;;
	esac
}

# The version of all packages, which the workspace has once.
version() {
	sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' Cargo.toml
}
