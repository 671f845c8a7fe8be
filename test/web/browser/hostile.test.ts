import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { agent, createRuntime, type Runtime, tool } from 'legate'
import { sqliteStore } from 'legate/store/sqlite'
import { scriptedModel } from 'legate/testing'
import type { Page } from 'playwright-core'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { Place } from '../../cli/support/cli.ts'
import { served } from '../../cli/support/served.ts'
import { skipWithoutBrowser, useBrowser, visitor } from '../support/browser.ts'
import { at, get, inspector, start } from '../support/inspector.ts'

useBrowser()
beforeEach(skipWithoutBrowser)

const RUN = 'window.hacked=1'

/** Ways to run a script, each for the place it was made for, and then in every other. */
const WAYS = [
  `<script>${RUN}</script>`,
  `</script><script>${RUN}</script>`,
  `<img src=x onerror=${RUN}>`,
  `<svg onload=${RUN}>`,
  `<svg><script>${RUN}</script></svg>`,
  `"><script>${RUN}</script>`,
  `'><img src=x onerror=${RUN}>`,
  `" autofocus onfocus=${RUN} x="`,
  `' onmouseover=${RUN} '`,
  `javascript:${RUN}`,
  `[link](javascript:${RUN})`,
  `![x](x"onerror="${RUN})`,
  `<a href="javascript:${RUN}">x</a>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<iframe src="javascript:parent.${RUN}"></iframe>`,
  `<object data="data:text/html,<script>${RUN}</script>"></object>`,
  `<embed src="javascript:${RUN}">`,
  `<body onload=${RUN}>`,
  `<input autofocus onfocus=${RUN}>`,
  `<details open ontoggle=${RUN}>`,
  `<video><source onerror=${RUN}></video>`,
  `<style>@import 'javascript:${RUN}'</style>`,
  `<link rel=stylesheet href="javascript:${RUN}">`,
  `<meta http-equiv=refresh content="0;url=javascript:${RUN}">`,
  `<base href="https://evil.example/">`,
  `<form action="javascript:${RUN}"><button>x</button></form>`,
  `<math><mtext></mtext><script>${RUN}</script></math>`,
  `<template><script>${RUN}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<!--><script>${RUN}</script>-->`,
  `<![CDATA[<script>${RUN}</script>]]>`,
  `{{constructor.constructor('${RUN}')()}}`,
  `\${${RUN}}`,
  `<%= ${RUN} %>`,
  `#{${RUN}}`,
  `</title><script>${RUN}</script>`,
  `</textarea><script>${RUN}</script>`,
  `</style><script>${RUN}</script>`,
  `\u2028${RUN}//`,
  `\\u003cscript\\u003e${RUN}\\u003c/script\\u003e`,
  `&lt;script&gt;${RUN}&lt;/script&gt;`,
  `%3Cscript%3E${RUN}%3C/script%3E`,
  `<ScRiPt>${RUN}</ScRiPt>`,
  `<script\n>${RUN}</script\n>`,
  `<script/x>${RUN}</script>`,
  `<img/src=x/onerror=${RUN}>`,
  `<x onclick=${RUN} tabindex=1>click</x>`,
  `<button onclick=${RUN}>click</button>`,
  `"};${RUN};//`,
  `');${RUN};//`,
]
/** The other half: the same ways, hidden behind words. */
const STRINGS = [...WAYS, ...WAYS.map((way, at) => `Line ${at}\n\n> quote\n\n${way} \u202e`)]

interface Hostile {
  readonly runId: string
  readonly conversationId: string
}

/** One run whose words are these strings: input, answers, thoughts, arguments, results. */
async function hostileRun(runtime: Runtime, texts: readonly string[]): Promise<Hostile> {
  const [first = ''] = texts
  const says = tool({
    description: first,
    input: { type: 'object', additionalProperties: true },
    effect: 'pure',
    execute: (input) => Object.values(input as object).join(' '),
  })
  const calls = texts.map((text) => ({
    text,
    reasoning: text,
    calls: [{ name: 'says', input: { [text.slice(0, 40)]: text } }],
  }))
  const model = scriptedModel([...calls, texts.join('\n')])
  const speaker = agent({ name: 'speaker', description: first, instructions: first, tools: { says }, model })
  const run = runtime.run(speaker, texts.join('\n'), { title: first.slice(0, 190), owner: first.slice(0, 100) })
  await run.result
  return { runId: run.id, conversationId: run.conversationId }
}

test('100 script strings as owners, titles, arguments, results and answers run nothing, and no policy had to help', async () => {
  expect(STRINGS).toHaveLength(100)
  for (const name of WAYS.slice(0, 8))
    expect(() => agent({ name, instructions: 'x' })).toThrow('is not a name for an agent')
  const place = new Place()
  const runtime = createRuntime({ store: sqliteStore(place.store) })
  for (const text of STRINGS) await hostileRun(runtime, [text])
  const tens = Array.from({ length: 10 }, (_, at) => STRINGS.slice(at * 10, at * 10 + 10))
  const runs: Hostile[] = []
  for (const ten of tens) runs.push(await hostileRun(runtime, ten))
  await runtime.close()
  const server = await served(place, ['--workers', '0'])
  const ann = await visitor()
  const page = await ann.open(server.url)
  await page.getByText('speaker').first().waitFor()
  await unhacked(page)

  for (const [at, { conversationId }] of runs.entries()) {
    await page.goto(`${server.base}/c/${conversationId}`)
    await openAll(page)
    if (at > 1) continue
    for (const view of ['Graph', 'Time']) {
      await page.getByRole('link', { name: view, exact: true }).click()
      await page.getByRole('heading', { level: 1 }).waitFor()
      await unhacked(page)
    }
  }
  await page.goto(`${server.base}/diff/${runs[0]?.runId}/${runs[2]?.runId}`)
  await page.getByRole('heading', { level: 1 }).waitFor()
  await unhacked(page)
}, 120_000)

/** Opens what is folded, so that all of it is shown. */
async function openAll(page: Page): Promise<void> {
  await page.locator('[data-node]').first().waitFor()
  await page.locator('.thread [aria-expanded="false"]').evaluateAll((folds) => {
    for (const fold of folds) (fold as HTMLElement).click()
  })
  await unhacked(page)
}

async function unhacked(page: Page): Promise<void> {
  expect(await page.evaluate(() => 'hacked' in globalThis)).toBe(false)
  expect(await page.locator('iframe, object, embed, [onerror], [onload], [onfocus]').count()).toBe(0)
}

test("the page of one owner shows for another's run exactly what it shows for an id that does not exist", async () => {
  const place = new Place()
  const server = await inspector(place)
  const tokenOf = async (name: string) => (await place.run(['token', 'add', name])).stdout.trim()
  const [ann, bob] = [
    { ...server, token: await tokenOf('ann') },
    { ...server, token: await tokenOf('bob') },
  ]
  const run = await start(ann, 'careful')
  const [hers, his] = [await visitor(), await visitor()]
  await (await hers.open(at(ann, `/c/${run.conversationId}`))).getByText('deploy needs a yes').first().waitFor()
  his.expects(/status of 404/)
  const page = await his.open(at(bob, '/'))
  await page.getByRole('heading', { level: 1 }).waitFor()
  /** All that he is shown, but for the id that he asked for himself. */
  const shown = async (id: string, path: string) => {
    await page.goto(server.base + path.replace('ID', id))
    await page.getByText('It is not here, or not yours to see.').waitFor()
    await page.locator('.live', { hasText: 'Live' }).first().waitFor()
    return (await page.locator('body').innerHTML()).replaceAll(id, 'ID')
  }

  for (const path of ['/c/ID', '/c/ID/graph', '/c/ID/time', '/diff/ID/ID']) {
    const id = path.startsWith('/diff') ? run.runId : run.conversationId
    expect(await shown(id, path)).toBe(await shown('01890000-0000-7000-8000-00000000dead', path))
  }
  await page.goto(server.base)
  await page.getByRole('heading', { level: 1 }).waitFor()
  expect(await page.getByRole('button', { name: 'Allow once' }).count()).toBe(0)
})

test('a page of another origin reads nothing and starts nothing', async () => {
  const place = new Place()
  const server = await inspector(place)
  const evil = createServer((_, answer) => answer.setHeader('content-type', 'text/html').end('<h1>evil</h1>'))
  await new Promise<void>((resolve) => {
    evil.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    evil.close()
  })
  const ann = await visitor()
  ann.expects(/CORS|Failed to load|WebSocket|EventSource|frame|refused|blocked|ERR_/i)
  const page = await ann.open(`http://127.0.0.1:${(evil.address() as AddressInfo).port}/`)

  const tried = await page.evaluate(attack, { base: server.base, token: server.token })

  expect(tried).toEqual({
    read: 'no',
    start: 'no',
    noCors: 'opaque',
    form: 'sent',
    source: 'no',
    socket: 'no',
    frame: 'no',
  })
  expect(await get(server, '/v1/runs')).toMatchObject({ runs: [] })
})

/** Everything that a page can try, with the token in its hands. Runs in the browser. */
async function attack({ base, token }: { readonly base: string; readonly token: string }) {
  const body = JSON.stringify({ agent: 'poet', input: { topic: 'theft', mood: 'grave' } })
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' }
  const said = (promise: Promise<unknown>) =>
    promise.then(
      () => 'yes' as const,
      () => 'no' as const,
    )
  const read = await said(fetch(`${base}/v1/runs`, { headers }))
  const start = await said(fetch(`${base}/v1/runs`, { method: 'POST', headers, body }))
  const noCors = await fetch(`${base}/v1/runs`, { method: 'POST', mode: 'no-cors', body }).then(
    ({ type }) => type,
    () => 'opaque',
  )
  const form = document.createElement('form')
  const target = document.createElement('iframe')
  target.name = 'target'
  form.target = 'target'
  form.method = 'post'
  form.action = `${base}/v1/runs`
  form.append(Object.assign(document.createElement('input'), { name: 'agent', value: 'poet' }))
  document.body.append(target, form)
  form.submit()
  const heard = (make: () => EventTarget & { close(): void }, good: string) =>
    new Promise<string>((resolve) => {
      const source = make()
      source.addEventListener(good, () => resolve('yes'))
      source.addEventListener('error', () => {
        source.close()
        resolve('no')
      })
    })
  const source = await heard(() => new EventSource(`${base}/v1/feed`), 'open')
  const socket = await heard(() => new WebSocket(`${base.replace('http', 'ws')}/v1/feed`), 'open')
  const inside = document.createElement('iframe')
  inside.src = base
  document.body.append(inside)
  await new Promise((resolve) => setTimeout(resolve, 500))
  let frame = 'no'
  try {
    frame = inside.contentDocument?.body.textContent?.includes('legate') === true ? 'yes' : 'no'
  } catch {
    frame = 'no'
  }
  return { read, start, noCors, form: 'sent', source, socket, frame }
}

test('a name that somebody else bound to this machine reaches nothing', async () => {
  const place = new Place()
  const server = await inspector(place)
  const port = new URL(server.base).port
  const ann = await visitor()
  ann.expects(/status of 421/)

  const page = await ann.open(at(server, '/').replace('127.0.0.1', 'evil.localhost'))

  expect(await page.evaluate(() => document.body.textContent)).toContain('wrong_host')
  expect(page.url()).toContain(`evil.localhost:${port}`)
})
