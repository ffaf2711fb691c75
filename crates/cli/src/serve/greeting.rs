//! What standard output says at the start.

use tidegate_server::host::DEFAULT_SHELL;
use tidegate_server::listen::Listening;

use super::config::Config;
use super::token::Token;
use crate::terminal;

/// What a newcomer needs next.
pub fn greet(config: &Config, listening: &Listening, token: Option<&Token>) {
    let address = listening.address();
    terminal::line(&format!(
        "Tidegate {} listens on http://{address}{}",
        env!("CARGO_PKG_VERSION"),
        config.api.base
    ));
    for shell in &config.shells {
        let mut place = shell.store.clone();
        if !shell.namespace.is_default() {
            place = format!("{place}, namespace {}", shell.namespace);
        }
        match shell.id.as_str() {
            DEFAULT_SHELL => terminal::line(&format!("Store: {place}")),
            id => terminal::line(&format!("Shell {id}: {place}")),
        }
    }
    match token {
        None => terminal::line("Authentication is off: everybody on this machine may do everything."),
        Some(Token::Given(_)) => terminal::line("Token: as given"),
        Some(Token::Kept(_, file)) => terminal::line(&format!("Token: in {}", file.display())),
        Some(Token::Made(text, Some(file))) => {
            terminal::line(&format!("Token: {text}"));
            terminal::line(&format!(
                "  (made now and shown this once; kept in {})",
                file.display()
            ));
        }
        Some(Token::Made(text, None)) => {
            terminal::line(&format!("Token: {text}"));
            terminal::line("  (made for this run; set TIDEGATE_TOKEN to keep one)");
        }
    }
    let server = match address.port() {
        8088 => String::new(),
        _ => format!(" --server http://{address}"),
    };
    terminal::line("Try:");
    match token {
        Some(Token::Kept(_, file) | Token::Made(_, Some(file))) => {
            terminal::line(&format!("  export TIDEGATE_TOKEN_FILE={}", file.display()));
        }
        Some(Token::Made(text, None)) => terminal::line(&format!("  export TIDEGATE_TOKEN={text}")),
        Some(Token::Given(_)) | None => {}
    }
    terminal::line(&format!("  tidegate deploy{server} examples/hello.bpmn"));
    terminal::line(&format!("  tidegate start{server} hello --wait"));
    terminal::line(&format!("  tidegate status{server}"));
}
