// Tests of the developer console in a browser, against a real `companyscore up`. Run by `make e2e`.
import assert from 'node:assert/strict';
import { createRequire } from 'node:module';
import { readFile } from 'node:fs/promises';
import { createServer, request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { Service, narrow, openBrowser, signIn, wide } from './service.mjs';

const axeSource = await readFile(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const bytesMax = 150_000;

let browser;
before(async () => { browser = await openBrowser(); });
after(async () => { await browser?.close(); });

// watch records what a page must not do: errors in the console, which include violations of its content
// policy, errors of scripts, and requests to other hosts.
function watch(page, service) {
  const faults = [];
  const answers = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') faults.push(`console: ${message.text()}`);
  });
  page.on('pageerror', (error) => faults.push(`script: ${error.message}`));
  page.on('request', (request) => {
    if (!request.url().startsWith(`${service.base}/`)) faults.push(`request off the host: ${request.url()}`);
  });
  page.on('response', (response) => answers.push(response));
  return { faults, answers };
}

// audit returns the findings of axe-core. The protocol of the browser evaluates it, so that the content
// policy of the page stays as it is.
async function audit(page) {
  const session = await page.context().newCDPSession(page);
  const evaluate = async (expression) => {
    const answer = await session.send('Runtime.evaluate', { expression, awaitPromise: true, returnByValue: true });
    if (answer.exceptionDetails) throw new Error(JSON.stringify(answer.exceptionDetails));
    return answer.result.value;
  };
  await evaluate(`${axeSource}; undefined`);
  const findings = await evaluate(`axe.run(document, { runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'wcag22aa', 'best-practice'] })
    .then((result) => result.violations.map((v) => v.id + ': ' + v.nodes.map((n) => n.html.slice(0, 160)).join(' | ')))`);
  await session.detach();
  return findings;
}

// send makes a request without a browser. from is the loopback address of the client.
function send(address, { method = 'GET', headers = {}, body = '', from } = {}) {
  return new Promise((resolve, reject) => {
    const call = httpRequest(address, { method, headers, localAddress: from, agent: false }, (answer) => {
      let text = '';
      answer.on('data', (part) => { text += part; });
      answer.on('end', () => resolve({ status: answer.statusCode, headers: answer.headers, text }));
    });
    call.on('error', reject);
    call.end(body);
  });
}

// eventually repeats a check until it is true, for at most 30 seconds.
async function eventually(what, check) {
  for (const end = Date.now() + 30_000; Date.now() < end;) {
    if (await check()) return;
    await new Promise((resolve) => { setTimeout(resolve, 250); });
  }
  assert.fail(`it did not happen that ${what}`);
}

for (const javaScriptEnabled of [true, false]) {
  describe(javaScriptEnabled ? 'with JavaScript' : 'without JavaScript', () => {
    let service;
    let page;
    let seen;
    before(async () => {
      service = await Service.start();
      const context = await browser.newContext({ viewport: wide, javaScriptEnabled });
      context.setDefaultTimeout(8000);
      page = await context.newPage();
      seen = watch(page, service);
    });
    after(async () => {
      await page?.context().close();
      await service?.stop();
    });
    const at = (path) => `${service.base}/console${path}`;
    const heading = () => page.getByRole('heading', { level: 1 });

    test('signs in once with a link', async () => {
      await page.goto(at(''));
      assert.equal(new URL(page.url()).pathname, '/console/sign-in');
      await page.goto(service.link);
      await page.goto(service.link); // looking at it does not use it up
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.waitForURL(at(''));
      const cookies = await page.context().cookies();
      assert.deepEqual(cookies.map((c) => [c.httpOnly, c.sameSite, c.path]), [[true, 'Strict', '/console']]);
      const again = await send(service.link, { method: 'POST', headers: { 'Sec-Fetch-Site': 'same-origin' } });
      assert.equal(again.status, 403);
    });

    test('imports the examples and shows a first score', async () => {
      await page.getByRole('button', { name: 'Import the 880 examples and score them' }).click();
      await page.waitForURL(at('/examples'));
      await page.getByText('880 of 880 companies have a score.').waitFor({ timeout: 60_000 });
      await page.getByRole('link', { name: 'Apple' }).click();
      await heading().filter({ hasText: 'Apple' }).waitFor();
      await page.getByText('of this score rests on data').waitFor();
      assert.equal(await page.locator('.signals tbody tr').count(), 67);
      await page.getByText('This is the first record.').waitFor();
    });

    test('shows what changed since the last record', async () => {
      await service.command('run', 'start', 'apple.com', '--older-than', '0', '--wait', '--quiet');
      await page.reload();
      await page.locator('#history ~ details').getByText('The 2 newest records as a table').waitFor();
      await page.getByText('Known data changed').waitFor();
    });

    test('finds companies by domain and name', async () => {
      const find = async (text) => {
        await page.getByRole('searchbox').fill(text);
        await page.getByRole('button', { name: 'Find' }).click();
      };
      await find('APPL');
      await page.getByRole('link', { name: 'Apple', exact: true }).waitFor();
      await find('https://www.zapier.com/');
      await page.waitForURL(at('/companies/zapier.com'));
      await find('no company has this name');
      await page.getByText('No scored company has').waitFor();
      await find('not-scored-yet.com');
      await page.getByRole('link', { name: 'Score not-scored-yet.com' }).click();
      await page.getByRole('button', { name: 'Score not-scored-yet.com' }).click();
      await page.getByText('of this score rests on data').waitFor({ timeout: 30_000 });
    });

    test('makes a key, which works until it is revoked', async () => {
      await page.getByRole('link', { name: 'Keys', exact: true }).first().click();
      await page.getByLabel('Name', { exact: true }).fill('browser test');
      await page.getByRole('button', { name: 'Make the key' }).click();
      const raw = await page.getByLabel('The new key').inputValue();
      assert.match(raw, /^svc_live_\w{30}$/);
      if (javaScriptEnabled) {
        await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
        await page.getByRole('button', { name: 'Copy' }).click();
        await page.getByRole('button', { name: 'Copied' }).waitFor();
      }
      await page.goto(at('/keys'));
      assert.ok(!(await page.content()).includes(raw), 'the key is shown once');
      const call = (id) => send(`${service.base}/v1/score/apple.com`, { headers: { 'X-API-Key': raw, 'X-Request-Id': id } });
      const usable = await call('request-of-the-key');
      assert.equal(usable.status, 200);
      const refused = await send(`${service.base}/v1/score/never-scored.com`, { headers: { 'X-API-Key': raw, 'X-Request-Id': 'request-refused' } });
      assert.equal(refused.status, 404);
      await page.getByRole('link', { name: 'Revoke browser test' }).click();
      await page.getByRole('button', { name: 'Revoke the key' }).click();
      await page.getByText('revoked').first().waitFor();
      await eventually('the revoked key is refused', async () => (await call('request-after-revoke')).status === 401);
    });

    test('refuses a key without a name', async () => {
      const token = await page.locator('main form input[name=token]').getAttribute('value');
      const answer = await page.context().request.post(at('/keys'), { form: { token, name: ' ', mode: 'live' }, headers: { 'Sec-Fetch-Site': 'same-origin' } });
      assert.equal(answer.status(), 400);
      assert.match(await answer.text(), /Give the key a name/);
    });

    test('shows requests and why one was refused', async () => {
      await eventually('the refused request is listed', async () => {
        await page.goto(at('/requests?status=404'));
        return await page.getByRole('link', { name: 'request-refused' }).count() > 0;
      });
      await page.getByRole('link', { name: 'request-refused' }).click();
      await page.getByText('The company has no stored score, or none').waitFor();
      await page.goto(at('/requests'));
      await page.getByLabel('Request id').fill('request-of-the-key');
      await page.getByRole('main').getByRole('button', { name: 'Find' }).click();
      await page.getByRole('link', { name: 'request-of-the-key' }).waitFor();
    });

    test('shows usage, and changes a tier as an operator', async () => {
      await page.goto(at('/usage'));
      await page.getByRole('rowheader', { name: 'browser test' }).waitFor();
      await page.goto(at('/operators'));
      await page.getByLabel('Tier of demo').selectOption('growth');
      await page.getByRole('button', { name: 'Change' }).click();
      await page.goto(at('/usage'));
      await page.getByText('Tier growth.').waitFor();
    });

    test('has every change in the audit log', async () => {
      await page.goto(at('/operators/audit'));
      for (const action of ['sign in', 'import started', 'score started', 'key created', 'key revoked', 'tier changed']) {
        await page.getByRole('cell', { name: action, exact: true }).first().waitFor();
      }
    });

    test('makes no error and no request to another host', () => assert.deepEqual(seen.faults, []));

    test('has accessible pages in light and dark, wide and narrow', { skip: !javaScriptEnabled && 'axe-core needs JavaScript' }, async (t) => {
      const findings = [];
      let audits = 0;
      await eventually('the companies are counted', async () => {
        await page.goto(at('/universe'));
        return await page.getByText('Rating mix').count() > 0;
      });
      const pages = ['', '/universe', '/universe?window=7d', '/keys', '/usage', '/requests', '/requests?id=none', '/requests/request-refused', '/data', '/examples',
        '/companies?q=a', '/companies?q=nobody', '/companies/apple.com', '/companies/unscored-company.com', '/operators', '/operators/keys', '/operators/runs', '/operators/audit', '/sign-in', '/link/NONE'];
      await page.goto(at('/keys'));
      pages.push(new URL(await page.getByRole('link', { name: /^Revoke/ }).first().getAttribute('href'), service.base).pathname.replace('/console', ''));
      const state = await page.context().storageState();
      for (const colorScheme of ['light', 'dark']) {
        for (const viewport of [wide, narrow]) {
          const context = await browser.newContext({ viewport, colorScheme, storageState: state });
          const other = await context.newPage();
          const watched = watch(other, service);
          for (const path of pages) {
            watched.answers.length = 0;
            await other.goto(at(path));
            const place = `${path || 'the first page'}, ${colorScheme}, ${viewport.width} px`;
            for (const finding of await audit(other)) findings.push(`${place}: ${finding}`);
            const width = await other.evaluate(() => document.documentElement.scrollWidth);
            if (width > viewport.width) findings.push(`${place}: the page is ${width} px wide`);
            audits += 1;
          }
          findings.push(...watched.faults);
          await context.close();
        }
      }
      assert.deepEqual(findings, []);
      t.diagnostic(`${audits} audits by axe-core, no finding`);
      let largest = [0];
      const fresh = await browser.newContext({ storageState: state });
      for (const path of pages) {
        const other = await fresh.newPage();
        const { answers } = watch(other, service);
        await other.goto(at(path), { waitUntil: 'networkidle' });
        let bytes = 0;
        for (const answer of answers) bytes += (await answer.body()).length;
        assert.ok(bytes < bytesMax, `${path} has ${bytes} bytes with its files, want fewer than ${bytesMax}`);
        if (bytes > largest[0]) largest = [bytes, path];
        await other.close();
      }
      await fresh.close();
      t.diagnostic(`largest page with its files: ${largest[1]} has ${largest[0]} bytes`);
    });

    test('can be used with the keyboard', { skip: !javaScriptEnabled && 'the same markup' }, async () => {
      await page.goto(at('/universe'));
      await page.keyboard.press('Tab');
      assert.equal(await page.evaluate(() => document.activeElement.textContent), 'Skip to the content');
      await page.keyboard.press('Enter');
      assert.equal(await page.evaluate(() => document.activeElement.id), 'main');
      await page.goto(at('/keys'));
      await page.getByLabel('Name', { exact: true }).focus();
      assert.notEqual(await page.evaluate(() => getComputedStyle(document.activeElement).outlineStyle), 'none');
    });

    test('refuses forged forms', async () => {
      await page.goto(at('/keys'));
      const keys = await page.locator('tbody tr').count();
      const token = await page.locator('main form input[name=token]').getAttribute('value');
      const [{ name, value }] = await page.context().cookies();
      const forge = (headers, fields) => send(at('/keys'), {
        method: 'POST', body: new URLSearchParams({ name: 'forged', mode: 'live', ...fields }).toString(),
        headers: { Cookie: `${name}=${value}`, 'Content-Type': 'application/x-www-form-urlencoded', ...headers },
      });
      const signOut = await page.locator('header input[name=token]').getAttribute('value');
      for (const [what, headers, fields] of [
        ['no token', {}, {}],
        ['the token of another form', {}, { token: signOut }],
        ['another site', { 'Sec-Fetch-Site': 'cross-site' }, { token }],
        ['another port of the host', { 'Sec-Fetch-Site': 'same-site' }, { token }],
        ['another origin', { Origin: 'http://example.com' }, { token }],
      ]) {
        assert.equal((await forge(headers, fields)).status, 403, what);
      }
      // A page of another origin that sends the form by itself.
      const evil = createServer((_, answer) => {
        answer.setHeader('Content-Type', 'text/html');
        answer.end(`<form method="post" action="${at('/keys')}"><input name="name" value="forged"><input name="mode" value="live"><input name="token" value="${token}"><button>Go</button></form>`);
      });
      await new Promise((resolve) => { evil.listen(0, '127.0.0.1', resolve); });
      const other = await page.context().newPage();
      await other.goto(`http://127.0.0.1:${evil.address().port}/`);
      const [answer] = await Promise.all([other.waitForResponse((r) => r.url() === at('/keys')), other.getByRole('button').click()]);
      assert.equal(answer.status(), 403);
      await other.close();
      await new Promise((resolve) => { evil.close(resolve); evil.closeAllConnections(); });
      await page.goto(at('/keys'));
      assert.equal(await page.locator('tbody tr').count(), keys);
    });

    test('locks out nobody else for 100 wrong links', async () => {
      const headers = { 'Sec-Fetch-Site': 'same-origin' };
      const statuses = {};
      for (let i = 0; i < 100; i += 1) {
        const { status } = await send(at('/link/ABCDEFGHIJKLMNOPQRSTUVWXYZ'), { method: 'POST', headers, from: '127.0.0.9' });
        statuses[status] = (statuses[status] ?? 0) + 1;
      }
      assert.deepEqual(statuses, { 403: 20, 429: 80 });
      const context = await browser.newContext({ javaScriptEnabled });
      const other = await context.newPage();
      await signIn(other, await service.command('console', 'link')); // from 127.0.0.1
      // A session that is no operator's sees no page of operators.
      assert.equal((await other.goto(at('/operators'))).status(), 403);
      await context.close();
    });

    test('ends a stolen cookie with the sign-out', async () => {
      const state = await page.context().storageState();
      const context = await browser.newContext({ storageState: state, javaScriptEnabled });
      const thief = await context.newPage();
      await thief.goto(at('/keys'));
      assert.equal(new URL(thief.url()).pathname, '/console/keys');
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.waitForURL(at('/sign-in'));
      await thief.goto(at('/keys'));
      assert.equal(new URL(thief.url()).pathname, '/console/sign-in');
      await context.close();
    });
  });
}
