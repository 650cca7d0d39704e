// Starts a real `companyscore up` on free ports in a temporary directory, and a browser.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { chromium } from 'playwright-core';

const root = fileURLToPath(new URL('..', import.meta.url));
const program = join(root, 'bin/companyscore');

// Service is a running `up`. stop ends it and removes its data.
export class Service {
  static async start() {
    const service = new Service();
    service.dir = await mkdtemp(join(tmpdir(), 'companyscore-e2e-'));
    service.data = join(service.dir, 'data');
    service.process = spawn(program, ['up', '--data', service.data, '--listen', '127.0.0.1:0', '--sources', 'facts', '--log-level', 'warn'], { cwd: root });
    service.output = '';
    const ready = new Promise((resolve, reject) => {
      const read = (text) => {
        service.output += text;
        if (service.output.includes('Ctrl-C')) resolve();
      };
      service.process.stdout.on('data', read);
      service.process.stderr.on('data', read);
      service.process.on('exit', () => reject(new Error(`up ended:\n${service.output}`)));
    });
    try {
      await ready;
    } catch (err) {
      await rm(service.dir, { recursive: true, force: true });
      throw err;
    }
    service.link = service.output.match(/http:\S+\/console\/link\/\S+/)[0];
    service.base = service.link.replace(/\/console\/.*/, '');
    service.liveKey = service.output.match(/svc_live_\w+/)[0];
    return service;
  }

  // command runs the program on the data of the service and returns what it prints.
  async command(...args) {
    const child = spawn(program, [...args, '--data', this.data], { cwd: root });
    let out = '';
    let err = '';
    child.stdout.on('data', (text) => { out += text; });
    child.stderr.on('data', (text) => { err += text; });
    const [code] = await once(child, 'exit');
    if (code !== 0) throw new Error(`companyscore ${args.join(' ')}: ${err}`);
    return out.trim();
  }

  async stop() {
    this.process.removeAllListeners('exit');
    if (this.process.exitCode === null) {
      this.process.kill('SIGTERM');
      await once(this.process, 'exit');
    }
    await rm(this.dir, { recursive: true, force: true });
  }
}

export const wide = { width: 1280, height: 800 };
export const narrow = { width: 360, height: 740 };

export function openBrowser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM || '/usr/bin/chromium',
    args: process.getuid() === 0 ? ['--no-sandbox'] : [],
  });
}

// signIn redeems a link in a page.
export async function signIn(page, link) {
  await page.goto(link);
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.waitForURL('**/console');
}
