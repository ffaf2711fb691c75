// The live page (GET /) of a real server in a real browser: what an operator and a viewer see and may do there.
//
// Run by scripts/browser-test.sh, which says where the binary and the browser are. The last line is
// `browser: N passed, M failed`. Nothing here waits by time: every step waits for what it wants to see.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { chromium } from 'playwright-core';

const { TIDEGATE_BINARY: binary, CHROMIUM: browserPath } = process.env;
// Only a broken page takes this long; a loaded machine may take some of it.
const PATIENCE_MS = 30_000;
const OPERATOR = 'operator-token-0123456789';
const VIEWER = 'viewer-token-0123456789';

/** Starts a server on a free port and gives its address and how to end it. */
async function serve(home) {
  const viewer = join(home, 'viewer');
  writeFileSync(viewer, VIEWER);
  const config = join(home, 'tidegate.toml');
  writeFileSync(config, [
    'store = "memory:"', 'listen = "127.0.0.1:0"',
    '[[tokens]]', 'name = "viewer"', `file = ${JSON.stringify(viewer)}`,
    'permissions = ["workflows/runtime:view"]', '',
  ].join('\n'));
  const own = Object.entries(process.env).filter(([name]) => !name.startsWith('TIDEGATE_'));
  const env = { ...Object.fromEntries(own), TIDEGATE_TOKEN: OPERATOR };
  const child = spawn(binary, ['serve', '--config', config], { cwd: home, env, stdio: ['ignore', 'pipe', 'pipe'] });
  let log = '';
  child.stderr.on('data', (data) => { log += data; });
  let address;
  const url = await new Promise((found, failed) => {
    child.on('error', failed);
    child.on('exit', (code) => failed(new Error(`the server ended with ${code}:\n${log}`)));
    createInterface({ input: child.stdout }).on('line', (line) => {
      address ??= line.match(/listens on (http:\/\/127\.0\.0\.1:\d+)/)?.[1];
      if (line === 'Try:') found(address);
    });
  });
  return { url, end: () => new Promise((ended) => { child.on('exit', ended); child.kill('SIGTERM'); }) };
}

/** A fresh page that has entered with a token. */
async function enter(browser, url, token) {
  const context = await browser.newContext();
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  const errors = [];
  page.on('pageerror', (error) => errors.push(error.message));
  await page.goto(url);
  await page.fill('#token', token);
  await page.click('#enter button');
  return { page, errors, close: () => context.close() };
}

/** Waits until the chip has this word. */
function chip(page, word) {
  return page.waitForFunction((wanted) => document.getElementById('chip').textContent === wanted, word);
}

const tests = {
  async 'a wrong token is refused with the reason, and is not kept'(browser, url) {
    const { page, close } = await enter(browser, url, 'a-token-of-nobody');
    await page.waitForFunction(() => document.getElementById('refused').textContent.includes('valid token'));
    assert.equal(await page.isVisible('#live'), false);
    assert.equal(await page.inputValue('#token'), '');
    await close();
  },

  async 'a viewer sees the state and no verbs'(browser, url) {
    const { page, errors, close } = await enter(browser, url, VIEWER);
    await chip(page, 'Accepting work');
    await page.waitForSelector('#sources tr');
    assert.equal(await page.textContent('#cycles'), '0');
    for (const verb of ['#verbs', '#pause', '#resume', '#force', '#sure']) {
      assert.equal(await page.isVisible(verb), false, `${verb} is offered`);
    }
    assert.deepEqual(errors, []);
    await close();
  },

  async 'an operator pauses with a reason, sees it, and resumes'(browser, url) {
    const { page, errors, close } = await enter(browser, url, OPERATOR);
    await chip(page, 'Accepting work');
    assert.equal(await page.isDisabled('#resume'), true);
    await page.fill('#why', 'moving the database');
    await page.click('#pause');
    await chip(page, 'Paused');
    const told = await page.textContent('#reason');
    assert.match(told, /Paused by operator at .*“moving the database”/);
    assert.equal(await page.isDisabled('#pause'), true);

    // Whoever looks now sees it too, without having asked for it.
    const viewer = await enter(browser, url, VIEWER);
    await chip(viewer.page, 'Paused');
    assert.match(await viewer.page.textContent('#reason'), /moving the database/);
    await page.click('#resume');
    await chip(page, 'Accepting work');
    await chip(viewer.page, 'Accepting work');
    assert.equal(await page.textContent('#reason'), '');
    assert.deepEqual([...errors, ...viewer.errors], []);
    await viewer.close();
    await close();
  },

  async 'force asks for the word to be typed'(browser, url) {
    const { page, errors, close } = await enter(browser, url, OPERATOR);
    await chip(page, 'Accepting work');
    assert.equal(await page.isDisabled('#force'), true);
    await page.fill('#sure', 'forc');
    assert.equal(await page.isDisabled('#force'), true);
    await page.fill('#sure', 'force');
    assert.equal(await page.isDisabled('#force'), false);
    await page.click('#force');
    await chip(page, 'Draining');
    await page.waitForFunction(() => document.getElementById('answer').textContent === 'Drained: Forced');
    assert.equal(await page.isVisible('#drain'), true);
    assert.equal(await page.inputValue('#sure'), '');
    assert.deepEqual(errors, []);
    await close();
  },
};

const home = mkdtempSync(join(tmpdir(), 'tidegate-browser-'));
let failed = 0;
let server;
let browser;
try {
  [server, browser] = await Promise.all([
    serve(home),
    chromium.launch({
      executablePath: browserPath,
      args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-background-networking',
        '--disable-component-update', '--disable-sync'],
    }),
  ]);
  // In their order: the last one ends the generation.
  for (const [name, test] of Object.entries(tests)) {
    try {
      await test(browser, server.url);
      console.log(`ok      ${name}`);
    } catch (error) {
      failed += 1;
      console.log(`FAILED  ${name}\n${error.stack}`);
    }
  }
} finally {
  await browser?.close();
  await server?.end();
  rmSync(home, { recursive: true, force: true });
}
console.log(`browser: ${Object.keys(tests).length - failed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
