import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { localStore } from '../support/rows.ts'
import { type Place, root, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

const HEAD = 'title: T\ndescription: D\ninstructions: You work.\nprompt: Go.\nextensions:\n'
const NOTHING = '/dev/null'
const HEARD = /then Enter >$/m

/** Programs that are no servers and end at once: enough to be asked for. */
function programs(...commands: readonly (readonly [command: string, ...args: string[]])[]): string {
  const lines = commands.map(
    ([cmd, ...args], at) => `  - {type: stdio, name: s${at}, cmd: ${cmd}, args: ${JSON.stringify(args)}}\n`,
  )
  return HEAD + lines.join('')
}

const RECIPES = [
  {
    what: 'three',
    text: programs(['cat', NOTHING], ['sort', NOTHING], ['tac', NOTHING]),
    asks: ['cat', 'sort', 'tac'],
  },
  { what: 'one command twice', text: programs(['cat', NOTHING], ['cat', '-n', NOTHING]), asks: ['cat', 'cat'] },
] as const

async function placeWith(text: string): Promise<Place> {
  const place = project({ 'a.yaml': text })
  await serveModel(place, (one) => one.on({}, { content: 'Done.' }))
  return place
}

/** Who allowed what, in the order of the record. */
function answersIn(place: Place): readonly object[] {
  const store = localStore(place.runtime())
  const events = store.roots({ limit: 1 }).flatMap(({ id }) => store.events(id, 0, 1_000))
  return events.map(({ body }) => body).filter(({ type }) => type === 'approval-answer')
}

async function allowOne(terminal: Terminal, command: string): Promise<void> {
  await terminal.shows((screen) => HEARD.test(screen) && screen.includes(`wants exec:${command}`))
  terminal.type('y')
  await terminal.shows('then Enter > y')
  terminal.type('\r')
}

describe.each(RECIPES)('a recipe with more than one MCP server asks for each: $what', ({ text, asks }) => {
  const allowed = asks.map((command) => expect.stringMatching(new RegExp(`^Allowed exec:${command}\\b`)))

  test('run --yes without a terminal allows all before it prints the answer', async () => {
    const place = await placeWith(text)
    const { code, stdout, stderr } = await place.run(['run', 'a.yaml', '--yes'])

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Done.\n' })
    expect(stderr.split('\n').filter((line) => line.startsWith('Allowed'))).toEqual(allowed)
    expect(stderr).not.toMatch(/waits for a person|needs a person/)
    expect(answersIn(place)).toHaveLength(asks.length)
  })

  test('run without a terminal waits for one after the other; approve and resume go through all', async () => {
    const place = await placeWith(text)
    let last = await place.run(['run', 'a.yaml'])
    const [, resume = ''] = /Then: legate (resume \w{8})\n/.exec(last.stderr) ?? []
    for (const command of asks) {
      const said = last.stderr + last.stdout
      expect(last.code).toBe(3)
      expect(said).toMatch(new RegExp(`waits for a person:\\n {2}exec:${command}\\b`))
      const [, approve = ''] = /waits for a person:[\s\S]*legate (approve \w{8} --seen \w{64}),/.exec(said) ?? []
      expect(await place.run(approve.split(' '))).toMatchObject({ code: 0 })
      last = await place.run(resume.split(' '))
    }

    expect(last).toMatchObject({ code: 0, stdout: 'Done.\n' })
  })

  test('chat --yes without a terminal', async () => {
    const place = await placeWith(text)
    const { code, stdout } = await place.run(['chat', 'a.yaml', '--yes'], { input: 'Go.\n' })

    expect({ code, stdout }).toEqual({ code: 0, stdout: 'Done.\n' })
    expect(answersIn(place)).toHaveLength(asks.length)
  })

  test('run in a terminal puts every question', async () => {
    const place = await placeWith(text)
    const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 120, rows: 24 })
    for (const command of asks) await allowOne(terminal, command)

    expect(await terminal.ended).toBe(0)
    expect(terminal.screen.all).toMatch(/\n\nDone\.$/)
    expect(answersIn(place)).toHaveLength(asks.length)
  })

  test('run --yes in a terminal asks nothing, and says above the tree which servers did not start', async () => {
    const place = await placeWith(text)
    const terminal = new Terminal(place, ['run', 'a.yaml', '--yes'], { cols: 120, rows: 24 })

    expect(await terminal.ended).toBe(0)
    expect(terminal.written).not.toContain('then Enter')
    expect(terminal.screen.all).toMatch(/\n\nDone\.$/)
    expect(terminal.screen.all.lastIndexOf('Allowed')).toBeLessThan(terminal.screen.all.indexOf('✓ a'))
    for (const at of asks.keys())
      expect(terminal.screen.all).toMatch(new RegExp(`^a: The tools of "s${at}" are not available: [^]*✓ a`, 'm'))
  })

  test('chat in a terminal puts every question', async () => {
    const place = await placeWith(text)
    const terminal = new Terminal(place, ['chat', 'a.yaml'], { cols: 120, rows: 24 })
    await terminal.shows((screen) => /\n> ?$/.test(screen))
    terminal.type('Go.\r')
    for (const command of asks) await allowOne(terminal, command)
    await terminal.shows((screen) => /Done\.[\s\S]*\n> ?$/.test(screen))
    terminal.type('\u0004')

    expect(await terminal.ended).toBe(0)
    expect(answersIn(place)).toHaveLength(asks.length)
  })
})

test('an answer holds for the question that was on the screen, not for the one that the same node asks next', async () => {
  const place = await placeWith(programs(['cat', NOTHING], ['sort', NOTHING]))
  const parked = await place.run(['run', 'a.yaml'])
  const runtime = place.runtime()
  const [asked] = await runtime.approvals()
  const nodeId = asked?.nodeId ?? ''
  expect(parked.code).toBe(3)
  await runtime.answer(nodeId, { allow: true })
  expect((await place.run(['resume'])).code).toBe(3)

  const [next] = await runtime.approvals()
  expect([asked?.request, next?.request]).toMatchObject([
    expect.stringContaining('exec:cat'),
    expect.stringContaining('exec:sort'),
  ])
  expect(next?.nodeId).toBe(nodeId)
  await expect(runtime.answer(nodeId, { allow: true, seen: asked?.seen ?? '' })).rejects.toThrow(
    'asks for something else now',
  )
  await runtime.answer(nodeId, { allow: true, seen: next?.seen ?? '' })
  expect(await place.run(['resume'])).toMatchObject({ code: 0 })
})

test('approve answers what was seen: not what the same call asks for next, and not what happens to wait in a run', async () => {
  const place = await placeWith(programs(['cat', NOTHING], ['sort', NOTHING]))
  const parked = await place.run(['run', 'a.yaml'])
  const runtime = place.runtime()
  const [, id = '', seen = ''] = /legate approve (\w{8}) --seen (\w{64})/.exec(parked.stderr) ?? []
  const [asked] = await runtime.approvals()
  expect(asked?.seen).toBe(seen)

  const byRun = await place.run(['approve', asked?.runId.slice(-8) ?? ''])
  const short = await place.run(['approve', id, '--seen', seen.slice(0, 16)])
  expect(byRun).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/^legate: Nothing was answered: the request must be seen first/),
  })
  expect(byRun.stderr).toContain(`legate approve ${id} --seen ${seen}`)
  expect(short).toMatchObject({ code: 2, stderr: expect.stringContaining('--seen needs 64 hex digits') })
  expect(await place.run(['approve', id, '--seen', seen])).toMatchObject({ code: 0 })
  const resumed = await place.run(['resume'])
  expect(resumed.code).toBe(3)

  const [next] = await runtime.approvals()
  const [why, listed] = [await place.run(['why', asked?.runId ?? '']), await place.run(['approvals'])]
  expect(why.stdout).toMatch(/legate approvals \w{8}$/m)
  for (const { stdout, stderr } of [parked, resumed, listed]) {
    expect(stdout + stderr).toMatch(/legate approve \w{8} --seen \w{64}/)
    expect(stdout + stderr).not.toMatch(/legate approve \w{8}(?! --seen)|--edit/)
  }
  expect([next?.nodeId, next?.request]).toEqual([asked?.nodeId, expect.stringContaining('exec:sort')])
  for (const words of [['--seen', seen], ['--seen', seen, '--always'], []]) {
    const refused = await place.run(['approve', id, ...words])
    expect(refused).toMatchObject({ code: 2, stdout: '', stderr: expect.stringContaining('Nothing was answered') })
    expect(refused.stderr).toMatch(/The current request:\n.*sort[\s\S]*--seen \w{64}/)
  }
  expect((await runtime.approvals()).map(({ seen }) => seen)).toEqual([next?.seen])
  expect(await place.run(['deny', id, '--seen', seen])).toMatchObject({ code: 2 })
  const answered = await place.run(['approve', id, '--seen', next?.seen ?? ''])
  expect(answered).toMatchObject({ code: 0, stdout: expect.stringMatching(/^Allowed: .*sort/) })
  expect(await place.run(['resume'])).toMatchObject({ code: 0 })
})

test('two real servers over stdio, started one after the other by --yes, give their tools', async () => {
  const file = (name: string) => path.join(root, `node_modules/@modelcontextprotocol/server-${name}/dist/index.js`)
  const server = (name: string, args: string) =>
    `  - {type: stdio, name: ${name}, cmd: ${process.execPath}, args: ['${file(name)}', ${args}]}\n`
  const place = project({ 'a.yaml': `${HEAD}${server('everything', 'stdio')}${server('filesystem', '/tmp')}` })
  const mock = await serveModel(place, (one) => one.on({}, { content: 'Done.' }))

  const { code, stdout } = await place.run(['run', 'a.yaml', '--yes'])
  const sent = JSON.stringify(mock.getLastRequest()?.body)

  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Done.\n' })
  for (const tool of ['everything__get-sum', 'filesystem__list_directory']) expect(sent).toContain(tool)
})

test('two servers over HTTP: each host is asked for, and in a terminal a no to the second ends what was asked', async () => {
  const [one, other] = [await httpPort(), await httpPort()]
  const extension = (port: number) =>
    `  - {type: streamable_http, name: h${port}, uri: 'http://127.0.0.1:${port}/mcp'}\n`
  const place = await placeWith(`${HEAD}${extension(one)}${extension(other)}`)

  const { code, stdout } = await place.run(['run', 'a.yaml', '--yes'])
  const terminal = new Terminal(place, ['run', 'a.yaml'], { cols: 120, rows: 24 })
  await terminal.shows((screen) => HEARD.test(screen))
  terminal.type('y\r')
  await terminal.shows((screen) => HEARD.test(screen) && screen.includes('Allowed net:'))
  terminal.type('n\r')

  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Done.\n' })
  expect(await terminal.ended).toBeTypeOf('number')
  expect(terminal.screen.all).toMatch(/Allowed net:.*\n[\s\S]*Denied net:/)
})

/** Listens, and has nothing to say. */
async function httpPort(): Promise<number> {
  const server = createServer((_request, response) => response.writeHead(404).end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => {
    server.close()
  })
  return (server.address() as AddressInfo).port
}

test('secrets of a recipe are asked for with its program and its host, each server once, and explain says where they go', async () => {
  const { url, seen } = await listener()
  const servers = [
    `  - {type: stdio, name: near, cmd: sort, args: [${NOTHING}], env_keys: [NEAR_TOKEN, NEAR_KEY], envs: {MODE_TOKEN: of-mine}}`,
    `  - {type: streamable_http, name: far, uri: '${url}', env_keys: [FAR_TOKEN], headers: {X: '\${FAR_TOKEN}'}}`,
  ]
  const place = await placeWith(`${HEAD}${servers.join('\n')}\n`)
  const env = { NEAR_TOKEN: 'hush-near-4711', NEAR_KEY: 'hush-key-4711', FAR_TOKEN: 'hush-far-4711' }

  const explained = await place.run(['explain', 'a.yaml'], { env })
  expect(explained.stdout).toContain(`near: starts sort ${NOTHING} and gets secret:NEAR_TOKEN, secret:NEAR_KEY`)
  expect(explained.stdout).toContain(`far: reaches ${url} and gets secret:FAR_TOKEN`)

  const parked = await place.run(['run', 'a.yaml'], { env })
  expect(parked.code).toBe(3)
  expect(parked.stderr).toMatch(
    /waits for a person:\n {2}exec:env 'MODE_TOKEN=\*{3}\(7:\w{4}\)' sort \/dev\/null, an MCP server.*, with the secrets NEAR_TOKEN, NEAR_KEY/,
  )
  expect((await place.runtime().approvals())[0]?.reason).toBe('a asks for exec:*; a asks for secret:*')
  expect(seen).toEqual([])

  const allowed = await place.run(['run', 'a.yaml', '--yes'], { env })
  expect(allowed).toMatchObject({ code: 0, stdout: 'Done.\n' })
  expect(answersIn(place)).toHaveLength(2)
  expect(seen[0]).toBe(env.FAR_TOKEN)
  expect([explained, parked, allowed].map(({ stdout, stderr }) => stdout + stderr).join()).not.toContain('hush')
})

async function listener() {
  const seen: (string | undefined)[] = []
  const server = createServer((request, response) => {
    seen.push(String(request.headers['x']))
    response.writeHead(404).end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void server.close())
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, seen }
}
