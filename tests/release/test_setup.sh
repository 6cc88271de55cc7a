#!/bin/sh
# test_setup.sh - what tools/setup.sh installs, with a dpkg and an apt-get that
# only pretend.
#
# usage: tests/release/test_setup.sh      in the source folder
set -eu
made=$(mktemp -d "${TMPDIR:-/tmp}/paceline-setup.XXXXXX")
trap 'rm -rf "$made"' EXIT

# All packages are installed but those of $ABSENT.
cat >"$made/dpkg-query" <<'FAKE'
#!/bin/sh
for package; do :; done
case " $ABSENT " in
*" $package "*) exit 1 ;;
esac
echo installed
FAKE
# Fails, so that setup.sh ends before it makes a venv.
cat >"$made/apt-get" <<'FAKE'
#!/bin/sh
for package; do :; done
[ "$package" = update ] || { echo "$package" >"$TAKEN"; exit 1; }
FAKE
printf '#!/bin/sh\necho 0\n' >"$made/id"
chmod +x "$made/dpkg-query" "$made/apt-get" "$made/id"

# installs WANTED ABSENT...: with those absent, WANTED is the last to install.
installs() {
    wanted=$1
    shift
    rm -f "$made/taken"
    PATH=$made:$PATH ABSENT=$* TAKEN=$made/taken PL_SKIP_SETUP=0 \
        tools/setup.sh test >"$made/said" 2>&1 || true
    [ "$(cat "$made/taken" 2>/dev/null)" = "$wanted" ] || {
        echo "without $*: not $wanted: $(cat "$made/said")"
        exit 1
    }
}

installs zsh zsh
installs groff-base groff-base
# Debian 12 has both of these names, Debian 13 only the first.
installs libclang-rt-dev libclang-rt-dev libclang-rt-14-dev
installs zsh libclang-rt-dev zsh
installs zsh libclang-rt-14-dev zsh
