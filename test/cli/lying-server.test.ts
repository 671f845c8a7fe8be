import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'
import { ask, served } from './support/served.ts'
import { Terminal } from './support/terminal.ts'

beforeEach(skipUnlessBuilt)

/** Clears the screen, turns the direction of what follows, and overwrites the line. */
const LIE = '\u001b[2J\u202ex\u009b1m\u200b\r'
/** Names of the protocol: without them nothing is read at all. */
const KEPT = new Set(['type', 'state', 'kind', 'verdict', 'on', 'next', 'cursor', 'role', 'version', 'code'])
const ID = /^[0-9a-f-]{36}$|^[0-9a-f]{64}$/
/** Everything that a terminal obeys, but the colours of the command line. */
const OBEYED =
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what must not be there
  /[\u0000-\u0008\u000b-\u000c\u000e-\u001a\u001c-\u001f\u007f-\u009f\u200b\u2028-\u202e\u2066-\u2069]|\u001b(?!\[(?:1|2|22|31|32|33|36|39)m)|\r(?!\n)/u

function lied(value: unknown, name = ''): unknown {
  if (typeof value === 'string') return KEPT.has(name) || ID.test(value) ? value : value + LIE
  if (Array.isArray(value)) return value.map((item) => lied(item, name))
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, lied(item, key)]))
}

function liedBody(text: string): string {
  const lines = text.split('\n').map((line) => {
    const [, head = '', json = ''] = /^(data: )?([[{].*)$/.exec(line) ?? []
    if (json === '') return line
    return head + JSON.stringify(lied(JSON.parse(json)))
  })
  return lines.join('\n')
}

/** A server that passes everything on, and puts sequences for the terminal behind every text of its answers. */
async function liar(base: string, token: string): Promise<string> {
  const server = createServer((request, answer) => {
    const headers = { authorization: `Bearer ${token}`, accept: request.headers.accept ?? '*/*' }
    fetch(base + request.url, { headers })
      .then(async (real) => {
        const text = await real.text()
        answer.writeHead(real.status, { 'content-type': real.headers.get('content-type') ?? 'text/plain' })
        answer.end(liedBody(text))
      })
      .catch(() => answer.destroy())
  })
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve)
  })
  onTestFinished(() => {
    server.closeAllConnections()
    server.close()
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

test('a server that lies moves nothing on the terminal, whatever command asks it', async () => {
  const place = new Place()
  place.open()
  const server = await served(place, [agentsModule])
  const runOf = async (agent: string) => {
    const body = JSON.stringify({ agent, input: 'Begin.' })
    const answer = await ask(server, '/v1/runs?wait=5', { method: 'POST', body })
    return ((await answer.json()) as { runId: string }).runId
  }
  const [ended, parked] = [await runOf('talker'), await runOf('careful')]
  const url = await liar(server.base, server.token)
  const env = { LEGATE_SERVER: url, LEGATE_TOKEN: 'any' }

  const commands = [
    ['ps', '--all'],
    ['approvals'],
    ['inbox'],
    ['show', ended],
    ['show', parked],
    ['why', parked],
    ['transcript', ended],
    ['diff', ended, parked],
    ['token', 'list'],
    ['show', '01890000-0000-7000-8000-00000000dead'],
  ]
  const obeyed: string[] = []
  let said = 0
  for (const command of commands) {
    const terminal = new Terminal(place, command, { cols: 100, rows: 40, env })
    await terminal.ended
    const written = terminal.written.replaceAll('\r\n', '\n')
    said += written.split('\\u001b[2J').length - 1
    const at = written.search(OBEYED)
    if (at >= 0) obeyed.push(`${command.join(' ')}: ${JSON.stringify(written.slice(Math.max(0, at - 60), at + 20))}`)
  }
  expect(obeyed).toEqual([])
  expect(said).toBeGreaterThan(10)
}, 60_000)
