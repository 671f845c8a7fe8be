// `legate serve` and `legate token`, as processes.

import { existsSync, readFileSync, statSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest'
import { PROMPTLY_MS } from '../support/pace.ts'
import { agentsModule, Place, skipUnlessBuilt } from './support/cli.ts'
import { serveModel } from './support/model-server.ts'
import { project } from './support/project.ts'
import { ask, served } from './support/served.ts'

beforeEach(skipUnlessBuilt)

interface Answered {
  readonly runId: string
  readonly state: string
  readonly outcome: { readonly status: string } | null
  readonly owner: string
}

async function started(server: Parameters<typeof ask>[0], agent: string, wait = 20): Promise<Answered> {
  const body = JSON.stringify({ agent, input: 'What colour is it?' })
  const answer = await ask(server, `/v1/runs?wait=${wait}`, { method: 'POST', body })
  return (await answer.json()) as Answered
}

describe('legate serve', () => {
  it('prints one line with its address within 2 s, and the same token at the next start', async () => {
    const place = new Place()
    const before = Date.now()
    const first = await served(place, [agentsModule])
    expect(Date.now() - before).toBeLessThan(2_000)
    expect(first.process.stdout).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/#token=lgt_[0-9a-f]{16}_[\w-]{43}\n$/)
    const file = path.join(place.folder, 'legate', `serve-${first.process.pid}.json`)
    const written = readFileSync(file, 'utf8')
    expect(JSON.parse(written)).toMatchObject({ address: first.base, pid: first.process.pid, store: place.store })
    expect(written).not.toContain(first.token.slice(4, 20))
    expect(statSync(file).mode & 0o777).toBe(0o600)
    first.process.kill('SIGTERM')
    expect((await first.process.ended).code).toBe(0)
    expect(existsSync(file)).toBe(false)
    const second = await served(place)
    expect(second.token).toBe(first.token)
  })

  it('says of a recipe that needs values of a person why it is no agent here', async () => {
    const place = project({
      'report.yaml':
        'version: 1.0.0\ntitle: Report\ndescription: Writes.\ninstructions: About {{ topic }}.\nprompt: Go on.\n' +
        'parameters:\n  - key: topic\n    input_type: string\n    requirement: required\n    description: It.\n',
    })
    place.open()
    const server = await served(place, ['report.yaml'])

    expect(await (await ask(server, '/v1/agents')).json()).toMatchObject({ agents: [] })
    expect(server.process.stderr).toContain('report.yaml needs values of a person (topic), so clients of MCP get it')
  })

  it('offers agents of files and modules, runs them, and prints a line for a request only when it is asked to', async () => {
    const place = project({
      'poet.md': '---\nname: poet\ndescription: Writes.\nmodel: openai/gpt-5\n---\nYou write.\n',
    })
    await serveModel(place, (mock) => mock.onMessage(/.*/, { content: 'Roses are red.' }))
    place.open()
    const server = await served(place, ['poet.md', agentsModule, '--verbose'])
    const { agents } = (await (await ask(server, '/v1/agents')).json()) as { agents: { name: string }[] }
    expect(agents.map(({ name }) => name)).toEqual(expect.arrayContaining(['poet', 'lead']))
    const poem = await started(server, 'poet')
    expect(poem).toMatchObject({ owner: 'local', outcome: { status: 'completed' } })
    const result = await ask(server, `/v1/runs/${poem.runId}/result`)
    expect(await result.json()).toMatchObject({ outcome: { text: 'Roses are red.' } })
    expect(server.process.stderr).toContain('POST /v1/runs 200')
    expect(server.process.stdout).toBe(`${server.url}\n`)
    const quiet = await served(place)
    await ask(quiet, '/v1/agents')
    expect(quiet.process.stderr.replace(/^legate: warning: .* lies where agents work .*\n/gm, '')).toBe('')
  })

  it('shares its store with other servers, and with legate run beside them', async () => {
    const place = new Place()
    place.open()
    const front = await served(place, [agentsModule, '--workers', '0'])
    const other = await served(place, [agentsModule, '--workers', '0'])
    const waiting = await started(front, 'lead', 0)
    expect(waiting.outcome).toBeNull()
    await served(place, [agentsModule])
    const beside = await place.run(['run', agentsModule, '--agent', 'lead', 'What colour is it?'])
    expect(beside.code).toBe(0)
    const answer = await ask(other, `/v1/runs/${waiting.runId}/result?wait=20`)
    expect(await answer.json()).toMatchObject({ outcome: { status: 'completed' } })
  })

  it('ends in order at a signal: a run goes back to the store, and the next server ends it', async () => {
    const place = new Place()
    const first = await served(place, [agentsModule])
    const run = await started(first, 'lead', 0)
    const stream = await ask(first, `/v1/runs/${run.runId}/events`)
    first.process.kill('SIGTERM')
    expect(await stream.text()).toContain('event: moved')
    expect((await first.process.ended).code).toBe(0)
    place.open()
    const second = await served(place, [agentsModule])
    const answer = await ask(second, `/v1/runs/${run.runId}/result?wait=20`)
    expect(await answer.json()).toMatchObject({ outcome: { status: 'completed' } })
  })

  it('ends at once at the second signal', async () => {
    const place = new Place()
    place.more['LEGATE_TEST_DEAF'] = '1'
    const server = await served(place, [agentsModule])
    await started(server, 'lead', 0)
    await new Promise((resolve) => setTimeout(resolve, 500))
    server.process.kill('SIGINT')
    await server.process.says('Another signal ends at once.')
    const before = Date.now()
    server.process.kill('SIGINT')
    expect((await server.process.ended).code).toBe(130)
    expect(Date.now() - before).toBeLessThan(PROMPTLY_MS)
  })

  it('listens on a Unix socket that only its user can open', async () => {
    const place = new Place()
    const socket = path.join(place.folder, 'legate.sock')
    const started = place.legate(['serve', agentsModule, '--socket', socket])
    await started.says(`unix:${socket}\n`)
    expect(statSync(socket).mode & 0o777).toBe(0o600)
  })

  it('says in one line why it cannot start', async () => {
    const place = new Place()
    const taken = createServer()
    await new Promise<void>((resolve) => {
      taken.listen(0, '127.0.0.1', resolve)
    })
    onTestFinished(() => {
      taken.close()
    })
    const { port } = taken.address() as { port: number }
    const cases: readonly (readonly [args: readonly string[], words: string])[] = [
      [['--port', String(port)], 'another program does. Choose another port with --port N'],
      [['--port', 'many'], '--port is a whole number'],
      [['--host', 'no.such.host.invalid', '--behind-proxy', ...OIDC], 'Name an address of this machine with --host'],
      [['missing.yaml'], 'there is no such file'],
      [['missing.mjs'], 'There is no module'],
      [['--host', '0.0.0.0'], 'Give --tls-cert FILE and --tls-key FILE, or --behind-proxy'],
      [['--tls-cert', 'cert.pem'], 'give both'],

      [['--tls-cert', 'cert.pem', '--tls-key', 'key.pem'], 'Cannot read cert.pem: it is not there.'],
      [['--oidc-issuer', 'https://id.example'], 'give both'],
      [['--socket', 'x.sock', '--port', '1'], 'leave out --host and --port'],
      [['--socket', 'no/such/folder/x.sock'], 'its folder does not exist'],
      // Who may come is written in the store: this server looks there.
      [['--host', '0.0.0.0', '--behind-proxy'], NOBODY],
    ]
    for (const [args, words] of cases) {
      const { code, stdout, stderr } = await place.run(['serve', ...args])
      expect([args, code === 0, stdout, stderr.trim().split('\n').length]).toEqual([args, false, '', 1])
      expect(stderr).toContain(words)
      const isLeft = existsSync(place.store)
      if (words !== NOBODY) expect([args, isLeft]).toEqual([args, false])
    }
  })
})

const NOBODY = 'Make a token first: legate token add NAME'
const OIDC = ['--oidc-issuer', 'https://id.example', '--oidc-audience', 'agents']

describe('legate token', () => {
  it('makes no store for a token that it refuses, nor in a folder that is not there', async () => {
    const place = new Place()
    const wrong = await place.run(['token', 'add', 'ann', '--per-day', 'eur=5'])
    expect([wrong.code, wrong.stderr]).toEqual([1, expect.stringContaining('perDay has no option "eur"')])
    const nowhere = await place.run(['token', 'add', 'ann', '--store', `${place.folder}/typo/runs.db`])
    expect(nowhere).toMatchObject({ stderr: expect.stringContaining('Make the folder first') })
    expect(existsSync(place.store) || existsSync(`${place.folder}/typo`)).toBe(false)
  })

  it('makes a token that a server takes, shows it once, and revokes it with those within it', async () => {
    const place = new Place()
    place.open()
    const made = await place.run([
      'token',
      'add',
      'ann',
      '--agents',
      'le*',
      '--scopes',
      'start,read',
      '--expires',
      '30d',
    ])
    expect(made.stdout).toMatch(/^lgt_[0-9a-f]{16}_[\w-]{43}\n$/)
    const token = made.stdout.trim()
    const [, id = ''] = token.split('_')
    const inner = await place.run(['token', 'add', 'ann', '--scopes', 'read', '--within', id, '--json'])
    expect(JSON.parse(inner.stdout)).toMatchObject({ info: { parent: id, principal: { scopes: ['read'] } } })
    const server = await served(place, [agentsModule])
    const ann = { base: server.base, token }
    expect(await started(ann, 'lead')).toMatchObject({ owner: 'ann', outcome: { status: 'completed' } })
    expect((await ask(ann, '/v1/runs', { method: 'POST', body: '{"agent":"careful","input":"x"}' })).status).toBe(404)
    const listed = await place.run(['token', 'list'])
    expect(listed.stdout).toContain(id)
    expect(listed.stdout).not.toContain(token)
    const { stdout } = await place.run(['token', 'revoke', id, '--json'])
    expect(JSON.parse(stdout).revoked).toHaveLength(2)
    await expect.poll(async () => (await ask(ann, '/v1')).status, { timeout: 5_000 }).toBe(401)
  })

  it('cancels the open runs of the owner when it is asked to', async () => {
    const place = new Place()
    const token = (await place.run(['token', 'add', 'ann'])).stdout.trim()
    const server = await served(place, [agentsModule])
    const run = await started({ base: server.base, token }, 'lead', 0)
    const { stdout } = await place.run(['token', 'revoke', token, '--cancel'])
    expect(stdout).toContain('1 run asked to stop')
    const answer = await ask(server, `/v1/runs/${run.runId}/result?wait=20`)
    expect(await answer.json()).toMatchObject({ outcome: { status: 'cancelled' } })
  })

  it('lets a server listen beyond this machine, and says what is wrong with options', async () => {
    const place = new Place()
    const cases: readonly (readonly [args: readonly string[], words: string])[] = [
      [['add', 'ann', '--scopes', 'fly'], '"fly" is no scope'],
      [['add', 'ann', '--per-day', 'much'], '--per-day is a list of limits'],
      [['add', 'ann', '--per-day', 'cats=3'], 'cats'],
      [['add', 'ann', '--expires', 'soon'], '--expires is a time'],
      [['add', 'ann', '--sees', 'all'], 'needs the scope admin or audit'],
      [['add', 'ann', '--grant', 'none.json'], 'Cannot read none.json'],
      [['add', 'ann', '--within', 'ffff0000'], 'There is no token ffff0000'],
      [['add'], 'legate token add NAME'],
      [['revoke', 'abcd'], 'There is no token abcd'],
    ]
    for (const [args, words] of cases) {
      const { code, stderr } = await place.run(['token', ...args])
      expect([args, code === 0]).toEqual([args, false])
      expect(stderr).toContain(words)
      expect(stderr.trim().split('\n')).toHaveLength(1)
    }
    await place.run(['token', 'add', 'ann', '--grant-deny', 'exec:*', '--budget', 'usd=1', '--sees', 'ann,bob'])
    const server = await served(place, ['--host', '0.0.0.0', '--behind-proxy'])
    expect(server.process.stdout).toMatch(/^http:\/\/0\.0\.0\.0:\d+\n$/)
  })
})
