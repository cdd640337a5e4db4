//! Mirrors of Debian that this machine takes packages from, as apt is configured.

use std::{
    env, fs,
    path::{Path, PathBuf},
};

/// The folder with apt's configuration.
const APT: &str = "/etc/apt";

/// The environment variable that names a mirror of Debian, for systems whose apt has none.
const VARIABLE: &str = "RLF_DEBIAN_MIRROR";

/// The mirror that `RLF_DEBIAN_MIRROR` names, then those of apt in its order, without a slash at their end.
pub(crate) fn mirrors() -> Vec<String> {
    let apt = Path::new(APT);
    let mut files = vec![apt.join("sources.list")];
    if let Ok(folder) = fs::read_dir(apt.join("sources.list.d")) {
        let mut found: Vec<PathBuf> = folder
            .filter_map(|entry| Some(entry.ok()?.path()))
            .collect();
        found.sort();
        files.extend(found);
    }
    let named = env::var(VARIABLE).ok().filter(|uri| !uri.is_empty());
    let mut mirrors = Vec::new();
    for file in files {
        let Ok(text) = fs::read_to_string(&file) else {
            continue;
        };
        let uris = match file.extension().and_then(|extension| extension.to_str()) {
            Some("list") => line_uris(&text),
            Some("sources") => stanza_uris(&text),
            _ => continue,
        };
        mirrors.extend(uris);
    }
    let mut seen: Vec<String> = named.iter().map(|uri| without_slash(uri)).collect();
    let first = seen.clone();
    mirrors.retain(|uri: &String| {
        let is_new = is_debian(uri) && !seen.contains(uri);
        seen.push(uri.clone());
        is_new
    });
    first.into_iter().chain(mirrors).collect()
}

/// True if the pool of Debian can be below it; other sources of packages have other names.
fn is_debian(uri: &str) -> bool {
    let is_http = uri.starts_with("http://") || uri.starts_with("https://");
    is_http && uri.rsplit('/').next() == Some("debian")
}

/// The URIs in the format with one source a line: `deb [options] URI suite component..`.
fn line_uris(text: &str) -> Vec<String> {
    let uri = |line: &str| {
        let rest = line.trim().strip_prefix("deb")?;
        let rest = rest.strip_prefix("-src").unwrap_or(rest);
        if !rest.starts_with(char::is_whitespace) {
            return None;
        }
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']')?.1,
            None => rest,
        };
        rest.split_whitespace().next().map(without_slash)
    };
    text.lines().filter_map(uri).collect()
}

/// The URIs in the format with stanzas (deb822): `URIs:` with one or more, also on lines that continue it.
fn stanza_uris(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for stanza in text.split("\n\n") {
        let (mut uris, mut is_enabled, mut is_uris) = (Vec::new(), true, false);
        for line in stanza.lines().filter(|line| !line.starts_with('#')) {
            let value = if line.starts_with(char::is_whitespace) {
                line
            } else if let Some((field, value)) = line.split_once(':') {
                is_uris = field.eq_ignore_ascii_case("URIs");
                is_enabled &= !(field.eq_ignore_ascii_case("Enabled") && value.trim() == "no");
                value
            } else {
                continue;
            };
            if is_uris {
                uris.extend(value.split_whitespace().map(without_slash));
            }
        }
        if is_enabled {
            found.extend(uris);
        }
    }
    found
}

fn without_slash(uri: &str) -> String {
    uri.trim_end_matches('/').to_owned()
}

#[cfg(test)]
mod tests {
    use super::{is_debian, line_uris, stanza_uris};

    #[test]
    fn a_line_names_one_mirror() {
        let text = "# deb http://commented.example/debian a main\n\
                    deb http://one.example/debian/ bookworm main\n\
                    deb [arch=amd64 signed-by=/k.gpg] https://two.example/debian bookworm main\n\
                    deb-src http://three.example/debian bookworm main\ndebug http://no.example/debian\n";
        let found = line_uris(text);
        assert_eq!(
            found,
            [
                "http://one.example/debian",
                "https://two.example/debian",
                "http://three.example/debian"
            ]
        );
    }

    #[test]
    fn a_stanza_names_several_unless_it_is_disabled() {
        let text = "Types: deb\n# URIs: http://commented.example/debian\nURIs: http://one.example/debian\n http://two.example/debian/\n\
                    Suites: bookworm\n\nEnabled: no\nURIs: http://off.example/debian\n\nuris: http://three.example/debian\n";
        assert_eq!(
            stanza_uris(text),
            [
                "http://one.example/debian",
                "http://two.example/debian",
                "http://three.example/debian"
            ]
        );
    }

    #[test]
    fn other_sources_of_packages_are_left_out() {
        assert!(!is_debian("http://one.example/debian-security"));
        assert!(!is_debian("file:/srv/debian"));
        assert!(is_debian("http://one.example/debian"));
    }
}
