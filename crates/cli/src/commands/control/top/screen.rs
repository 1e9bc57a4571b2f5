//! The screen of `headtime top`, and its keys.

use super::super::disk_target;
use super::page::{self, Figures};
use super::server::{EVERY, ask, state};
use crate::args::SortBy;
use headtime_lab::fault::Fault;
use headtime_lab::output::Terminal;
use headtime_linux::clock::Clock;
use headtime_linux::shown::one_line;
use headtime_units::Nanos;
use ratatui::Frame;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::layout::{Constraint, Layout};
use ratatui::style::{Color, Style, Stylize as _};
use ratatui::text::{Line, Span};
use ratatui::widgets::Paragraph;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

const HELP: &str = "\
q      end
s      next order of the exports
f      freeze the figures, or go on
tab    select the next disk
c      change the scheduler of the selected disk, after a question
g      change its gate, after a question
?      this help";

/// Colours of the parts of an arm's time, in their order.
const COLOURS: [Color; 6] = [
    Color::Blue,
    Color::Green,
    Color::Yellow,
    Color::Magenta,
    Color::Cyan,
    Color::Red,
];

/// State of the screen.
struct Screen {
    now: Value,
    before: Option<Value>,
    sort: SortBy,
    is_frozen: bool,
    /// Number of the disk that keys change.
    selected: usize,
    input: KeyInput,
    /// Outcome of the last change.
    said: String,
}

/// Use of the next key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum KeyInput {
    Command,
    Help,
    /// The text of a scheduler or a gate is typed.
    Text(Wish),
    /// A question waits for its answer.
    Question(Wish),
}

/// A change of a disk that is not made yet.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wish {
    disk: String,
    /// `scheduler` or `gate`, as in the server's addresses.
    what: &'static str,
    text: String,
}

/// Demand of a key.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    Nothing,
    End,
    Change(Wish),
}

/// Shows the server until a key ends the command, or the server goes away.
pub(super) fn run(socket: &Path, sort: SortBy) -> Result<(), Fault> {
    let mut screen = Screen::new(state(socket)?, sort);
    let problem = |error| Fault::File(format!("the terminal: {error}"));
    let mut terminal = ratatui::try_init().map_err(problem)?;
    let clock = Clock::start();
    let every = Nanos::from_nanos(EVERY.as_nanos() as u64);
    let mut next = clock.now() + every;
    let shown = loop {
        if let Err(error) = terminal.draw(|frame| screen.draw(frame)) {
            break Err(problem(error));
        }
        let left = next.saturating_since(clock.now());
        match key(Duration::from_nanos(left.as_nanos())) {
            Err(error) => break Err(problem(error)),
            Ok(Some(key)) => match screen.press(key) {
                Asked::Nothing => {}
                Asked::End => break Ok(()),
                Asked::Change(wish) => match change(socket, &wish) {
                    Ok(said) => screen.said = said,
                    Err(fault) => break Err(fault),
                },
            },
            Ok(None) => {}
        }
        if clock.now() >= next {
            next = clock.now() + every;
            match state(socket) {
                Ok(state) => screen.renew(state),
                Err(fault) => break Err(fault),
            }
        }
    };
    ratatui::restore();
    shown
}

/// The next order of the exports.
fn next(sort: SortBy) -> SortBy {
    match sort {
        SortBy::Place => SortBy::Bytes,
        SortBy::Bytes => SortBy::Requests,
        SortBy::Requests => SortBy::P99,
        SortBy::P99 => SortBy::Place,
    }
}

fn name(sort: SortBy) -> &'static str {
    match sort {
        SortBy::Place => "as configured",
        SortBy::Bytes => "by MB/s",
        SortBy::Requests => "by requests/s",
        SortBy::P99 => "by p99",
    }
}

/// Waits for a key.
fn key(within: Duration) -> std::io::Result<Option<KeyEvent>> {
    if !event::poll(within)? {
        return Ok(None);
    }
    Ok(match event::read()? {
        Event::Key(key) if key.kind == KeyEventKind::Press => Some(key),
        _ => None,
    })
}

/// Asks the server for a change. A refusal is no fault, and is shown.
fn change(socket: &Path, wish: &Wish) -> Result<String, Fault> {
    let Wish { disk, what, text } = wish;
    match ask(socket, "POST", &disk_target(disk, what)?, text) {
        Ok(_) => Ok(format!("{disk} has the {what} {text}")),
        Err(Fault::Check(why)) => Ok(format!("refused: {why}")),
        Err(fault) => Err(fault),
    }
}

impl Screen {
    fn new(now: Value, sort: SortBy) -> Screen {
        Screen {
            now,
            before: None,
            sort,
            is_frozen: false,
            selected: 0,
            input: KeyInput::Command,
            said: String::new(),
        }
    }

    /// Takes a newer state.
    fn renew(&mut self, state: Value) {
        if !self.is_frozen {
            self.before = Some(std::mem::replace(&mut self.now, state));
        }
    }

    fn figures(&self) -> Figures<'_> {
        Figures::new(&self.now, self.before.as_ref())
    }

    /// The disk that keys change.
    fn disk(&self) -> String {
        let disks = self.figures().disks();
        let place = self.selected % disks.len().max(1);
        let disk = disks.get(place);
        disk.map_or_else(String::new, |disk| disk.word("/name"))
    }

    fn press(&mut self, key: KeyEvent) -> Asked {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return match key.code {
                KeyCode::Char('c') => Asked::End,
                _ => Asked::Nothing,
            };
        }
        match std::mem::replace(&mut self.input, KeyInput::Command) {
            KeyInput::Command => return self.command(key.code),
            KeyInput::Help => {}
            KeyInput::Text(mut wish) => {
                match key.code {
                    KeyCode::Esc => return Asked::Nothing,
                    KeyCode::Enter => {
                        self.input = KeyInput::Question(wish);
                        return Asked::Nothing;
                    }
                    KeyCode::Backspace => {
                        wish.text.pop();
                    }
                    KeyCode::Char(letter) => wish.text.push(letter),
                    _ => {}
                }
                self.input = KeyInput::Text(wish);
            }
            KeyInput::Question(wish) if key.code == KeyCode::Char('y') => {
                return Asked::Change(wish);
            }
            KeyInput::Question(_) => "nothing is changed".clone_into(&mut self.said),
        }
        Asked::Nothing
    }

    fn command(&mut self, code: KeyCode) -> Asked {
        match code {
            KeyCode::Char('q') | KeyCode::Esc => return Asked::End,
            KeyCode::Char('s') => self.sort = next(self.sort),
            KeyCode::Char('f') => self.is_frozen = !self.is_frozen,
            KeyCode::Tab => self.selected = self.selected.wrapping_add(1),
            KeyCode::Char('c') => self.input = KeyInput::Text(self.wish("scheduler")),
            KeyCode::Char('g') => self.input = KeyInput::Text(self.wish("gate")),
            KeyCode::Char('?' | 'h') => self.input = KeyInput::Help,
            _ => {}
        }
        Asked::Nothing
    }

    /// A change that begins with the text in force.
    fn wish(&self, what: &'static str) -> Wish {
        let disk = self.disk();
        let disks = self.figures().disks().into_iter();
        let mut named = disks.filter(|of| of.word("/name") == disk);
        let in_force = named.next().map(|of| of.word(&format!("/{what}")));
        let text = in_force.unwrap_or_default();
        Wish { disk, what, text }
    }

    fn draw(&self, frame: &mut Frame<'_>) {
        let areas = Layout::vertical([Constraint::Min(1), Constraint::Length(1)]);
        let [main, last] = areas.areas(frame.area());
        let lines = match self.input {
            KeyInput::Help => HELP
                .lines()
                .map(|line| Line::from(line.to_owned()))
                .collect(),
            _ => self.lines(usize::from(main.width)),
        };
        frame.render_widget(Paragraph::new(lines), main);
        frame.render_widget(Line::from(self.last_line()).reversed(), last);
    }

    fn lines(&self, width: usize) -> Vec<Line<'static>> {
        let figures = self.figures();
        let mut lines: Vec<Line<'_>> = figures.arms().iter().map(|arm| bar(arm, width)).collect();
        let mut is_heading = true;
        for line in page::text(&figures, self.sort, Terminal::default()).lines() {
            let style = match is_heading {
                true => Style::new().bold(),
                false => Style::new(),
            };
            is_heading = line.is_empty();
            lines.push(Line::styled(line.to_owned(), style));
        }
        lines
    }

    fn last_line(&self) -> String {
        match &self.input {
            KeyInput::Text(Wish { disk, what, text }) => {
                format!("{what} of {disk}: {text}_  (enter: go on, esc: leave as is)")
            }
            KeyInput::Question(Wish { disk, what, text }) => {
                format!("give {disk} the {what} {text}? y: yes, any other key: no")
            }
            KeyInput::Help => "any key: back".to_owned(),
            KeyInput::Command => {
                let frozen = if self.is_frozen { " FROZEN" } else { "" };
                let (disk, sort, said) = (self.disk(), name(self.sort), one_line(&self.said));
                format!("?: help, q: end{frozen}  disk {disk}, exports {sort}  {said}")
            }
        }
    }
}

/// The time of an arm as a bar, a colour for each part.
fn bar((name, parts): &(String, Vec<(&str, f64)>), width: usize) -> Line<'static> {
    let all: f64 = parts.iter().map(|(_, time)| time).sum();
    let room = width.saturating_sub(name.chars().count() + 1) as f64;
    let mut spans = vec![Span::raw(format!("{name} "))];
    let (mut end, mut drawn) = (0.0_f64, 0);
    let busy = parts.iter().filter(|(part, _)| *part != "idle");
    for ((part, time), colour) in busy.zip(COLOURS.into_iter().cycle()) {
        end += time / all.max(f64::MIN_POSITIVE) * room;
        let len = (end.round() as usize).saturating_sub(drawn);
        drawn += len;
        let label: String = part
            .chars()
            .chain(" ".repeat(len).chars())
            .take(len)
            .collect();
        spans.push(Span::styled(
            label,
            Style::new().fg(Color::Black).bg(colour),
        ));
    }
    Line::from(spans)
}

#[cfg(test)]
mod tests {
    use super::super::page::tests::state;
    use super::*;
    use ratatui::Terminal as Window;
    use ratatui::backend::TestBackend;

    fn screen() -> Screen {
        let mut screen = Screen::new(state(10.0, [100, 100]), SortBy::Place);
        screen.renew(state(11.0, [140, 120]));
        screen
    }

    fn press(screen: &mut Screen, keys: &str) -> Asked {
        let code = |letter| match letter {
            '\n' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '<' => KeyCode::Backspace,
            '!' => KeyCode::Esc,
            letter => KeyCode::Char(letter),
        };
        let keys = keys.chars().map(code);
        keys.fold(Asked::Nothing, |_, code| screen.press(code.into()))
    }

    fn drawn(screen: &Screen) -> String {
        let mut window = Window::new(TestBackend::new(120, 20)).unwrap();
        window.draw(|frame| screen.draw(frame)).unwrap();
        window.backend().to_string()
    }

    #[test]
    fn the_screen_has_bars_tables_and_the_keys() {
        let text = drawn(&screen());
        for part in [
            "disk0 seek ",
            "commands/s",
            "one          40",
            "?: help, q: end",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    #[test]
    fn a_frozen_screen_keeps_its_figures() {
        let mut screen = screen();
        press(&mut screen, "f");
        let before = drawn(&screen);
        screen.renew(state(12.0, [900, 900]));
        assert!(before.contains("FROZEN"));
        assert_eq!(drawn(&screen), before);
        press(&mut screen, "f");
        screen.renew(state(12.0, [900, 900]));
        assert_ne!(drawn(&screen), before);
    }

    #[test]
    fn a_change_is_made_only_after_its_question_is_answered_with_yes() {
        let mut screen = screen();
        assert_eq!(press(&mut screen, "c<<<<sptf\n"), Asked::Nothing);
        assert!(drawn(&screen).contains("give disk0 the scheduler sptf? y: yes"));
        let wish = Wish {
            disk: "disk0".to_owned(),
            what: "scheduler",
            text: "sptf".to_owned(),
        };
        assert_eq!(press(&mut screen, "y"), Asked::Change(wish));
        for keys in ["c<<<<sptf\nn", "c<<<<sptf\n\n", "cy!", "y"] {
            assert_eq!(press(&mut screen, keys), Asked::Nothing, "{keys:?}");
            assert_eq!(screen.input, KeyInput::Command, "{keys:?}");
        }
        assert_eq!(press(&mut screen, "\tg"), Asked::Nothing);
        assert!(screen.last_line().starts_with("gate of disk1: "));
        assert_eq!(press(&mut screen, "!q"), Asked::End);
    }

    #[test]
    fn control_c_ends_even_while_a_text_is_typed() {
        let mut screen = screen();
        press(&mut screen, "c");
        let key = KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL);
        assert_eq!(screen.press(key), Asked::End);
    }

    #[test]
    fn bars_are_as_long_as_the_arm_was_busy() {
        let parts = vec![("idle", 0.5), ("rotation", 0.25), ("seek", 0.25)];
        let line = bar(&("d".to_owned(), parts), 42);
        let lengths: Vec<usize> = line.spans.iter().map(|span| span.content.len()).collect();
        assert_eq!(lengths, [2, 10, 10]);
        assert_eq!(bar(&("d".to_owned(), Vec::new()), 42).spans.len(), 1);
    }
}
