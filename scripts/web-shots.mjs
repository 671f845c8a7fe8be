// npm run web:shots: pictures of every page of the inspector, large and on a phone, light and dark, into shots/.
// Two of them are those of the README: --keep writes them to docs/images. Needs a built dist.

import { spawn } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { chromium } from 'playwright-core'
import { ARGS, unpackBrowser } from '../test/web/support/chromium.mjs'

const root = path.resolve(import.meta.dirname, '..')
const shots = path.join(root, 'shots')
const images = path.join(root, 'docs/images')
const SIZES = { desk: { width: 1440, height: 900 }, phone: { width: 390, height: 844 } }
const KEPT = { 'thread desk light': 'thread.png', 'time desk light': 'time.png' }

const { values } = parseArgs({ options: { keep: { type: 'boolean', default: false } } })
const folder = mkdtempSync(path.join(tmpdir(), 'legate-shots-'))
const server = await startServer()
const browser = await chromium.launch({ executablePath: await unpackBrowser(), args: ARGS })
try {
  const pages = await makeRuns()
  mkdirSync(shots, { recursive: true })
  for (const [size, viewport] of Object.entries(SIZES)) {
    for (const colorScheme of ['light', 'dark']) await takeAll(pages, { size, viewport, colorScheme })
  }
} finally {
  await browser.close()
  server.process.kill('SIGTERM')
  rmSync(folder, { recursive: true, force: true })
}

async function startServer() {
  const env = {
    ...process.env,
    XDG_STATE_HOME: folder,
    LEGATE_TEST_PACE: '700',
    LEGATE_TEST_GATE: path.join(folder, 'gate'),
  }
  const args = ['serve', 'test/web/programs/agents.mjs', '--port', '0', '--store', path.join(folder, 'runs.db')]
  const started = spawn(process.execPath, [path.join(root, 'dist/cli/main.js'), ...args], { cwd: root, env })
  const line = await new Promise((resolve, reject) => {
    started.stdout.once('data', (data) => resolve(String(data).trim()))
    started.stderr.on('data', (data) => process.stderr.write(data))
    started.once('exit', () => reject(new Error('The server has ended.')))
  })
  const [base, token] = line.split('/#token=')
  return { process: started, base, token }
}

async function start(body) {
  const headers = { authorization: `Bearer ${server.token}`, 'content-type': 'application/json' }
  const answer = await fetch(`${server.base}/v1/runs`, { method: 'POST', headers, body: JSON.stringify(body) })
  return answer.json()
}

/** Runs in all states: done, waiting for a person, at work. */
async function makeRuns() {
  const poem = (topic) => start({ agent: 'poet', input: { topic, mood: 'calm' }, title: `A poem about ${topic}` })
  const [one, other] = [await poem('rivers'), await poem('harbours')]
  const lead = await start({
    agent: 'lead',
    input: 'Totals are off by one cent since Monday.',
    title: 'Repair the cart total',
  })
  await start({ agent: 'careful', input: 'Release it.', title: 'Release 2.4.1' })
  await start({ agent: 'teller', input: 'Ask them.', title: 'Ask around' })
  await sleep(16_000)
  return {
    inbox: '/',
    new: '/new',
    form: '/new/poet',
    thread: `/c/${lead.conversationId}`,
    graph: `/c/${lead.conversationId}/graph`,
    time: `/c/${lead.conversationId}/time`,
    past: `/c/${lead.conversationId}/time?seq=60`,
    diff: `/diff/${one.runId}/${other.runId}`,
    ops: '/ops',
    lost: '/c/01890000-0000-7000-8000-00000000dead',
  }
}

async function takeAll(pages, { size, viewport, colorScheme }) {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: 'reduce' })
  const stranger = await context.newPage()
  await stranger.goto(server.base)
  await take(stranger, `token ${size} ${colorScheme}`)
  const page = await context.newPage()
  await page.goto(`${server.base}/#token=${server.token}`)
  await sleep(500)
  for (const [name, to] of Object.entries(pages)) {
    await page.goto(server.base + to)
    await take(page, `${name} ${size} ${colorScheme}`)
  }
  await context.close()
}

async function take(page, name) {
  await sleep(1_200)
  await page.screenshot({ path: path.join(shots, `${name.replaceAll(' ', '-')}.png`) })
  if (!values.keep || KEPT[name] === undefined) return
  mkdirSync(images, { recursive: true })
  await page.screenshot({ path: path.join(images, KEPT[name]), scale: 'css' })
}
