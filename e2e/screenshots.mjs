// Writes the pictures of the documents: the steps from an empty service to the first score, and some pages.
import { mkdir, stat } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { join } from 'node:path';
import { Service, narrow, openBrowser, signIn, wide } from './service.mjs';

const images = fileURLToPath(new URL('../docs/images/', import.meta.url));
const bytesMax = 150 << 10;

const service = await Service.start();
const browser = await openBrowser();
try {
  await mkdir(images, { recursive: true });
  const open = async (options) => {
    const context = await browser.newContext({ viewport: wide, ...options });
    return context.newPage();
  };
  const shoot = async (page, name, options = {}) => {
    const path = join(images, `${name}.png`);
    await page.screenshot({ path, ...options });
    const { size } = await stat(path);
    console.log(`docs/images/${name}.png ${Math.round(size / 1024)} kB`);
    if (size > bytesMax) throw new Error(`${name}.png has ${size} bytes, want at most ${bytesMax}`);
  };

  const page = await open({ viewport: { width: 1000, height: 560 } });
  await page.goto(service.link);
  await shoot(page, 'start-1-sign-in');
  await page.getByRole('button', { name: 'Sign in' }).click();
  await page.getByRole('button', { name: /Import the/ }).waitFor();
  await shoot(page, 'start-2-import');
  await page.getByRole('button', { name: /Import the/ }).click();
  await page.getByText('880 of 880 companies have a score.').waitFor({ timeout: 60000 });
  await shoot(page, 'start-3-scored');
  await page.getByRole('link', { name: 'Apple' }).click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await shoot(page, 'start-4-first-score');

  // A second record, and statistics of all companies.
  await service.command('run', 'start', 'apple.com', 'zapier.com', '--older-than', '0', '--wait', '--quiet');
  for (let tries = 0; tries < 240; tries += 1) {
    await page.goto(`${service.base}/console/universe`);
    if (await page.getByText(/^880 companies|8[78]\d companies/).count() > 0) break;
    await page.waitForTimeout(500);
  }

  await page.goto(`${service.base}/console/companies/apple.com`);
  await page.setViewportSize({ width: 1120, height: 800 });
  await shoot(page, 'company');
  for (const [name, address] of [['universe', '/console/universe'], ['keys', '/console/keys']]) {
    await page.goto(service.base + address);
    await page.setViewportSize({ width: 1120, height: name === 'keys' ? 480 : 800 });
    await shoot(page, name);
  }
  const phone = await open({ viewport: narrow, colorScheme: 'dark' });
  await signIn(phone, await service.command('console', 'link'));
  await phone.goto(`${service.base}/console/companies/apple.com`);
  await shoot(phone, 'company-dark');
  if (process.env.ALL) {
    for (const [name, address] of Object.entries({ home: '', usage: '/usage', requests: '/requests', data: '/data', search: '/companies?q=app', operators: '/operators', audit: '/operators/audit', runs: '/operators/runs', opkeys: '/operators/keys' })) {
      await page.goto(`${service.base}/console${address}`);
      await page.setViewportSize(wide);
      await page.screenshot({ path: join(process.env.ALL, `${name}.png`), fullPage: true });
    }
    await page.goto(`${service.base}/console/companies/apple.com`);
    await page.screenshot({ path: join(process.env.ALL, 'company-full.png'), fullPage: true });
    await phone.screenshot({ path: join(process.env.ALL, 'phone-full.png'), fullPage: true });
  }
} finally {
  await browser.close();
  await service.stop();
}
