use super::super::{Config, ListenConfig};

/// Reads a configuration with such a `[listen]`; its first key is in line 7.
fn read(listen: &str) -> Result<ListenConfig, String> {
    let disk = "[[disk]]\nname = \"d\"\ndevice = \"null\"\nsize = \"1MiB\"\nscheduler = \"noop\"\n";
    Config::parse("c.toml", &format!("{disk}[listen]\n{listen}\n"))
        .map(|config| config.listen)
        .map_err(|error| error.to_string())
}

/// Permissions and group, of the sockets for clients and of the one for control.
fn of(listen: &str) -> [(u32, Option<u32>); 2] {
    let listen = read(listen).unwrap_or_else(|error| panic!("{error}"));
    [&listen.access, &listen.control_access].map(|config| {
        let access = config.access();
        (access.mode, access.group)
    })
}

const BOTH: &str = "nbd = \"unix:n\"\ncontrol = \"unix:c\"\n";

#[test]
fn sockets_are_for_their_owner_unless_the_keys_say_otherwise() {
    let own = (0o600, None);
    for (keys, clients, control) in [
        ("", own, own),
        ("mode = \"0600\"", own, own),
        ("mode = \"0660\"", (0o660, None), own),
        ("mode = \"660\"", (0o660, None), own),
        ("mode = \"0666\"", (0o666, None), own),
        ("mode = \"0777\"", (0o777, None), own),
        ("mode = \"0620\"", (0o620, None), own),
        // A named group is let in. The control socket has keys of its own.
        ("group = \"root\"", (0o660, Some(0)), own),
        ("group = 4711", (0o660, Some(4711)), own),
        ("group = \"4711\"", (0o660, Some(4711)), own),
        ("group = 4294967294", (0o660, Some(4_294_967_294)), own),
        ("mode = \"0666\"\ngroup = \"root\"", (0o666, Some(0)), own),
        ("control_group = \"root\"", own, (0o660, Some(0))),
        ("control_mode = \"0660\"", own, (0o660, None)),
        (
            "group = 1\ncontrol_group = 2\ncontrol_mode = \"0770\"",
            (0o660, Some(1)),
            (0o770, Some(2)),
        ),
    ] {
        assert_eq!(of(&format!("{BOTH}{keys}")), [clients, control], "{keys}");
    }
}

#[test]
fn what_lets_in_nobody_or_too_many_is_refused_with_what_is_allowed() {
    for (keys, error) in [
        (
            "mode = 660",
            "c.toml:9: listen.mode: is the number 660, but should be permissions as octal text, such as \"0660\"",
        ),
        (
            "mode = 0o660",
            "c.toml:9: listen.mode: is the number 432, but should be",
        ),
        (
            "mode = true",
            "listen.mode: is true, but should be permissions",
        ),
        ("mode = \"\"", "listen.mode: \"\": write octal digits"),
        ("mode = \"60\"", "listen.mode: \"60\": write octal digits"),
        (
            "mode = \"00660\"",
            "listen.mode: \"00660\": write octal digits",
        ),
        (
            "mode = \"0o660\"",
            "listen.mode: \"0o660\": write octal digits",
        ),
        (
            "mode = \"0668\"",
            "listen.mode: \"0668\": write octal digits",
        ),
        (
            "mode = \"+660\"",
            "listen.mode: \"+660\": write octal digits",
        ),
        (
            "mode = \"rw-rw----\"",
            "listen.mode: \"rw-rw----\": write octal digits",
        ),
        (
            "mode = \"2660\"",
            "listen.mode: \"2660\": a socket has permissions only; the first of four digits is 0",
        ),
        (
            "mode = \"0060\"",
            "listen.mode: \"0060\": the server has to be able to connect; allowed for the owner is 6",
        ),
        (
            "mode = \"0460\"",
            "listen.mode: \"0460\": the server has to be able to connect",
        ),
        (
            "mode = \"0640\"",
            "listen.mode: \"0640\": the 4 for the group lets nobody in, as connecting takes permission to write; allowed is 0 or 6",
        ),
        (
            "mode = \"0664\"",
            "listen.mode: \"0664\": the 4 for others lets nobody in",
        ),
        (
            "mode = \"0755\"",
            "listen.mode: \"0755\": the 5 for the group lets nobody in",
        ),
        (
            "control_mode = \"0666\"",
            "c.toml:9: listen.control_mode: \"0666\": every user of this machine could tell the server what to do; allowed is 0 for others, and a group",
        ),
        (
            "group = \"no-such-group\"",
            "c.toml:9: listen.group: \"no-such-group\": there is no such group; allowed are those of `getent group`, and numbers",
        ),
        ("group = \"\"", "listen.group: \"\": there is no such group"),
        (
            "group = \"-1\"",
            "listen.group: \"-1\": there is no such group",
        ),
        (
            "group = \"+1\"",
            "listen.group: \"+1\": there is no such group",
        ),
        (
            "group = \"4294967295\"",
            "listen.group: \"4294967295\": there is no such group",
        ),
        (
            "group = -1",
            "listen.group: -1 is out of range; allowed is 0 to 4294967294",
        ),
        (
            "group = 4294967295",
            "listen.group: 4294967295 is out of range",
        ),
        (
            "group = 1.5",
            "listen.group: is the number 1.5, but should be the name or the number of a group",
        ),
        (
            "control_group = \"no-such-group\"",
            "c.toml:9: listen.control_group: \"no-such-group\": there is no such group",
        ),
        (
            "mode = \"0600\"\ngroup = \"root\"",
            "c.toml:10: listen.group: \"root\": mode 0600 lets no group in; mode = \"0660\" does",
        ),
        (
            "control_group = 7\ncontrol_mode = \"0600\"",
            "c.toml:9: listen.control_group: \"7\": mode 0600 lets no group in; control_mode = \"0660\" does",
        ),
        (
            "modes = \"0660\"",
            "c.toml:9: listen.modes: unknown key; did you mean `mode`?",
        ),
    ] {
        let found = read(&format!("{BOTH}{keys}")).expect_err(keys);
        assert!(found.contains(error), "{keys}: {found}");
    }
}

/// A file cannot limit the users that connect to an address.
#[test]
fn keys_without_a_unix_socket_are_refused() {
    for (listen, error) in [
        (
            "nbd = \"tcp:127.0.0.1:0\"\nmode = \"0660\"",
            "c.toml:8: listen.mode: is for unix sockets, and nbd has none",
        ),
        (
            "group = 7",
            "c.toml:7: listen.group: is for unix sockets, and nbd has none",
        ),
        (
            "nbd = \"unix:n\"\ncontrol_group = 7",
            "c.toml:8: listen.control_group: is for unix sockets, and control has none",
        ),
        (
            "nbd = \"unix:n\"\ncontrol_mode = \"0600\"",
            "c.toml:8: listen.control_mode: is for unix sockets, and control has none",
        ),
    ] {
        let found = read(listen).expect_err(listen);
        assert!(found.contains(error), "{listen}: {found}");
    }
    let both = "nbd = [\"tcp:127.0.0.1:0\", \"unix:n\"]\ngroup = 7";
    assert_eq!(of(both)[0], (0o660, Some(7)));
}

#[test]
fn what_takes_a_restart_of_the_sockets_is_said_by_key() {
    let listen = |keys: &str| read(&format!("{BOTH}{keys}")).expect(keys);
    let before = listen("group = 0");
    let differences = |keys: &str| before.fixed_differences(&listen(keys));
    // Equal permissions with another name, with the default written out, and in another line.
    assert_eq!(differences("\nmode = \"0660\"\ngroup = \"root\""), [""; 0]);
    assert_eq!(differences("group = 1"), ["mode or group"]);
    assert_eq!(differences("group = 0\nmode = \"0666\""), ["mode or group"]);
    assert_eq!(
        differences("control_mode = \"0660\"\ntcp = true\nmetrics = \"127.0.0.1:1\""),
        [
            "mode or group",
            "tcp",
            "metrics",
            "control_mode or control_group"
        ]
    );
    let other = read("nbd = \"unix:x\"").expect("fits");
    assert_eq!(
        before.fixed_differences(&other),
        ["nbd", "mode or group", "control"]
    );
}

#[test]
fn who_may_connect_is_shown_where_it_is_not_the_owner_alone() {
    let shown = |keys: &str| {
        read(&format!("{BOTH}{keys}"))
            .expect(keys)
            .access
            .to_string()
    };
    assert_eq!(shown(""), "");
    assert_eq!(shown("mode = \"0660\""), ", 0660");
    assert_eq!(shown("group = \"root\""), ", 0660, group root");
    assert_eq!(
        shown("mode = \"0666\"\ngroup = 7"),
        ", 0666, group 7, every user of this machine"
    );
}

#[test]
fn the_documentation_has_these_keys() {
    let page = include_str!("../../../../../../docs/serve.md");
    let (_, table) = page.split_once("## Keys").expect("a section of keys");
    let (table, _) = table.split_once("\n## ").expect("another section");
    for key in ["mode", "group", "control_mode", "control_group"] {
        assert!(table.contains(&format!("`{key}`")), "{key}");
    }
}
