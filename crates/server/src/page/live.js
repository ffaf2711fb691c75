// The live page: reads the runtime's events and shows them. The token lives in `token` below and nowhere else.
'use strict';

const base = document.querySelector('meta[name="tidegate-base"]').content;
const RETRY_MS = 2000;
const at = (id) => document.getElementById(id);

let token = '';
let shell = 'default';
// What is read now; a change of shell or token ends it.
let reading = null;

function api(path) {
  return `${base}/shells/${encodeURIComponent(shell)}/admin/workflow-runtime/${path}`;
}

function ask(url, options = {}) {
  const headers = { ...options.headers };
  // A server without authentication wants no token.
  if (token) headers.authorization = `Bearer ${token}`;
  return fetch(url, { ...options, headers, credentials: 'omit', cache: 'no-store' });
}

// --- showing ---

const CHIPS = {
  accepting: 'Accepting work', paused: 'Paused', draining: 'Draining', unavailable: 'Unavailable',
};

function chip(kind) {
  at('chip').className = `chip ${kind}`;
  at('chip').textContent = CHIPS[kind];
}

function time(text) {
  return text ? new Date(text).toLocaleString() : '-';
}

// Who is bound to tenants is told no numbers of all of them.
function count(number) {
  return number === null ? '-' : number;
}

let cyclesAtDrain = 0;

function show(status) {
  const state = status.state;
  const flags = state.reason.split(', ');
  const draining = flags.includes('Drain');
  const paused = flags.includes('AdministrativePause');
  chip(draining ? 'draining' : paused ? 'paused' : state.isAcceptingNewWork ? 'accepting' : 'unavailable');
  const words = [];
  if (paused) {
    words.push(`Paused by ${state.pauseRequestedBy} at ${time(state.pausedAt)}`);
    if (state.pauseReasonText) words.push(`“${state.pauseReasonText}”`);
    if (state.pausedUntil) words.push(`until ${time(state.pausedUntil)}`);
  }
  at('reason').textContent = words.join(', ');
  at('cycles').textContent = count(status.activeExecutionCycleCount);
  const queue = status.stimulusQueue;
  const limit = queue.maxDepthWhilePaused === null ? '' : ` of ${queue.maxDepthWhilePaused}`;
  at('queue').textContent = queue.depth === null ? '-' : `${queue.depth}${limit}`;
  at('queue').title = queue.oldestAcceptedAt ? `the oldest waits since ${time(queue.oldestAcceptedAt)}` : '';
  at('interrupted').textContent = count(status.interruptedInstanceCount);
  at('generation').textContent = state.generationId;
  at('sources').replaceChildren(...status.sources.map(row));
  showDrain(status, draining);
  at('pause').disabled = paused;
  at('resume').disabled = !paused;
}

function showDrain(status, draining) {
  at('drain').hidden = !draining;
  const live = status.activeExecutionCycleCount;
  cyclesAtDrain = draining ? Math.max(cyclesAtDrain, live) : 0;
  if (!draining) return;
  if (live === null) {
    at('progress').removeAttribute('value');
    at('drain-text').textContent = `the deadline is ${time(status.state.drainDeadlineAt)}`;
    return;
  }
  at('progress').value = cyclesAtDrain ? 100 * (1 - live / cyclesAtDrain) : 100;
  at('drain-text').textContent = live
    ? `${live} cycles run still; the deadline is ${time(status.state.drainDeadlineAt)}`
    : `begun at ${time(status.state.drainStartedAt)}; nothing runs any more`;
}

function row(source) {
  const cells = [source.name, source.state, time(source.lastTransitionAt),
    source.lastError ? `${source.lastErrorKind}: ${source.lastError}` : ''];
  const line = document.createElement('tr');
  line.append(...cells.map((text) => {
    const cell = document.createElement('td');
    cell.textContent = text;
    return cell;
  }));
  return line;
}

// --- reading ---

// Server-sent events over fetch: EventSource cannot send a token.
async function follow(signal) {
  while (!signal.aborted) {
    try {
      const answer = await ask(api('events'), { signal });
      if (answer.status === 401 || answer.status === 403 || answer.status === 404) {
        leave(await problem(answer));
        return;
      }
      if (!answer.ok) throw new Error(await problem(answer));
      at('connection').textContent = '';
      await read(answer.body.getReader());
    } catch (error) {
      if (signal.aborted) return;
      at('connection').textContent = `No news: ${error.message}. This says nothing of the runtime's health.`;
    }
    chip('unavailable');
    await new Promise((done) => setTimeout(done, RETRY_MS));
  }
}

async function read(reader) {
  const decoder = new TextDecoder();
  let text = '';
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const events = text.split('\n\n');
    text = events.pop();
    events.forEach(take);
  }
}

function take(event) {
  const lines = event.split('\n');
  const field = (name) => lines.filter((line) => line.startsWith(`${name}:`))
    .map((line) => line.slice(name.length + 1).trimStart()).join('\n');
  if (field('event') === 'status') show(JSON.parse(field('data')));
}

async function problem(answer) {
  try {
    return (await answer.json()).detail;
  } catch {
    return `the server answered ${answer.status}`;
  }
}

// --- entering and leaving ---

async function enter() {
  at('refused').textContent = '';
  try {
    const answer = await ask(`${base}/shells`);
    if (!answer.ok) {
      leave(await problem(answer));
      return;
    }
    const shells = (await answer.json()).items.map((item) => item.shellId);
    at('shell').replaceChildren(...shells.map((id) => new Option(id, id)));
    at('shell-label').hidden = shells.length < 2;
    shell = shells.includes('default') ? 'default' : shells[0];
    at('shell').value = shell;
  } catch (error) {
    leave(error.message);
    return;
  }
  await offer();
  at('enter').hidden = true;
  at('live').hidden = false;
  at('leave').hidden = token === '';
  restart();
}

// Only what the caller may do is offered; the server decides all the same.
async function offer() {
  const answer = await ask(`${base}/identity`);
  const who = answer.ok ? await answer.json() : { permissions: [] };
  // The verbs of this page are about all tenants.
  const may = who.tenants ? [] : who.permissions;
  const all = may.includes('*') || may.includes('workflows/runtime:control');
  const pauses = all || may.includes('workflows/runtime:pause');
  at('verbs').hidden = !pauses;
  at('pause').hidden = at('resume').hidden = !pauses;
  at('force').hidden = at('sure-label').hidden = !all;
}

function restart() {
  reading?.abort();
  reading = new AbortController();
  cyclesAtDrain = 0;
  follow(reading.signal);
}

function leave(why) {
  reading?.abort();
  token = '';
  chip('unavailable');
  at('enter').hidden = false;
  at('live').hidden = true;
  at('leave').hidden = true;
  at('shell-label').hidden = true;
  at('refused').textContent = why;
}

// --- acting ---

async function act(path, body) {
  at('answer').textContent = '…';
  try {
    const answer = await ask(api(path), {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) {
      at('answer').textContent = await problem(answer);
      return;
    }
    const done = await answer.json();
    at('answer').textContent = done.outcome ? `Drained: ${done.outcome.overallResult}` : 'Done';
    if (done.state) show(done);
  } catch (error) {
    at('answer').textContent = error.message;
  }
}

function reason() {
  const text = at('why').value.trim();
  return text ? { reason: text } : {};
}

at('enter').addEventListener('submit', (event) => {
  event.preventDefault();
  token = at('token').value.trim();
  at('token').value = '';
  enter();
});
at('leave').addEventListener('click', () => leave(''));
at('shell').addEventListener('change', () => {
  shell = at('shell').value;
  restart();
});
at('pause').addEventListener('click', () => act('pause', reason()));
at('resume').addEventListener('click', () => act('resume', {}));
at('sure').addEventListener('input', () => {
  at('force').disabled = at('sure').value !== 'force';
});
at('force').addEventListener('click', () => {
  if (at('sure').value !== 'force') return;
  at('sure').value = '';
  at('force').disabled = true;
  act('force-drain', reason());
});

// A server without authentication shows itself at once.
ask(`${base}/shells`).then((answer) => { if (answer.ok) enter(); }).catch(() => {});
