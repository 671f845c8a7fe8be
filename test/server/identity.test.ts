import { spawnSync } from 'node:child_process'
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { createServer, request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createRuntime, type Principal } from 'legate'
import { handler, serve } from 'legate/server'
import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { patient } from './support/patient.ts'
import { greeter, startServer } from './support/server.ts'
import { framesOf } from './support/sse.ts'

const folder = mkdtempSync(join(tmpdir(), 'legate-identity-'))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const ann: Principal = { id: 'ann', scopes: ['start', 'read'] }

describe('tokens', () => {
  test('who has the secret of an expired token hears that it has expired, and nobody else does', async () => {
    await using setting = await startServer({ limits: { failuresPerMinute: 3 } })
    const expired = await setting.tokenFor(ann, Date.now() - 1)
    const detail = async (token: string) => {
      const answer = await setting.get('/v1', { token })
      return [answer.status, ((await answer.json()) as { readonly detail: string }).detail]
    }
    const said = 'This token has expired. Ask whoever made it for a new one.'
    expect(await detail(expired)).toEqual([401, said])
    expect(await detail(`${expired.slice(0, -2)}AA`)).toEqual([401, 'This needs a valid token.'])
    expect(await detail(expired)).toEqual([401, said])
    // It counts as a wrong one does.
    expect((await detail(expired))[0]).toBe(429)
  })

  test('a changed secret, also of an expired token, and an unknown id are refused alike', async () => {
    await using setting = await startServer({ limits: { failuresPerMinute: 100 } })
    const expired = await setting.tokenFor(ann, Date.now() - 1)
    const good = await setting.tokenFor(ann)
    const [, id = '', secret = ''] = good.split(/_(?=[0-9a-f]{16}_)|(?<=^lgt_[0-9a-f]{16})_/)
    const wrong = [
      `${expired.slice(0, -2)}AA`,
      `lgt_${id}_${secret.slice(0, -1)}${secret.endsWith('A') ? 'B' : 'A'}`,
      `lgt_${'0'.repeat(16)}_${secret}`,
      'lgt_',
      'x.y.z',
      'abc',
    ]

    expect((await setting.get('/v1', { token: good })).status).toBe(200)
    const texts = new Set<string>()
    for (const token of wrong) {
      const answer = await setting.get('/v1', { token })
      expect(answer.status).toBe(401)
      texts.add(await answer.text())
    }
    expect(texts.size).toBe(1)
    expect((await setting.get('/v1', { headers: { cookie: `token=${good}` }, token: null })).status).toBe(401)
    expect((await setting.get(`/v1?token=${good}`, { token: null })).status).toBe(401)
  })

  test('the store has the hash of a secret, and never the secret', async () => {
    await using setting = await startServer()
    const token = await setting.tokenFor(ann)

    const rows = await setting.runtime.store.registry.list('token', { limit: 10 })

    expect(JSON.stringify(rows)).not.toMatch(token.slice(-43))
    expect(rows.map(({ owner }) => owner).sort()).toEqual(['ann', 'local'])
  })

  test('a token makes narrower ones only, and they go with it', async () => {
    await using setting = await startServer()
    const token = await setting.tokenFor({ ...ann, scopes: ['start', 'read'], agents: ['greeter'] })
    const make = (principal: object) => setting.post('/v1/tokens', { principal }, { token })

    expect((await make({ scopes: ['admin'] })).status).toBe(422)
    expect((await make({ id: 'bob', scopes: ['read'] })).status).toBe(422)
    const made = (await (await make({ scopes: ['read'], sees: ['bob'] })).json()) as {
      token: string
      info: { id: string }
    }
    const narrow = { token: made.token }
    expect((await setting.post('/v1/runs', { agent: 'greeter' }, narrow)).status).toBe(403)
    expect((await setting.get('/v1', narrow)).status).toBe(200)
    const list = (await (await setting.get('/v1/tokens', { token })).json()) as {
      tokens: { id: string; parent: string | null }[]
    }
    const parent = list.tokens.find(({ id }) => id === made.info.id)?.parent ?? ''
    expect(list.tokens).toHaveLength(2)

    expect(
      (
        await setting.get(`/v1/tokens/${made.info.id}`, {
          token: await setting.tokenFor({ ...ann, id: 'bob' }),
          method: 'DELETE',
        })
      ).status,
    ).toBe(404)
    const revoked = await setting.get(`/v1/tokens/${parent}`, { method: 'DELETE' })
    expect(((await revoked.json()) as { revoked: string[] }).revoked.sort()).toEqual([parent, made.info.id].sort())
    expect((await setting.get('/v1', narrow)).status).toBe(401)
    expect((await setting.get('/v1', { token })).status).toBe(401)
  })

  test('a revoked token loses its streams within 5 seconds', async () => {
    const { slow } = patient()
    await using setting = await startServer({}, { agents: [slow] })
    const token = await setting.tokenFor(ann)
    const { runId } = (await (await setting.post('/v1/runs', { agent: 'patient', input: 'x' }, { token })).json()) as {
      runId: string
    }
    const stream = await setting.get(`/v1/runs/${runId}/events`, { token })
    // Revoked by another process: nobody tells this server.
    await setting.runtime.store.registry.drop('token', token.slice(4, 20))

    const began = Date.now()
    const events: string[] = []
    for await (const { event } of framesOf(stream)) events.push(event)
    expect(events.at(-1)).toBe('closed')
    expect(Date.now() - began).toBeLessThan(5_000)
    await setting.runtime.cancel(runId)
  })

  test('the last use is written at most once a minute', async () => {
    await using setting = await startServer()
    const token = await setting.tokenFor(ann)
    const row = () => setting.runtime.store.registry.get('token', token.slice(4, 20))

    for (let count = 0; count < 5; count++) await setting.get('/v1', { token })
    await expect.poll(async () => (await row())?.version).toBe(2)
    expect(await row()).toMatchObject({ data: { lastUsedAt: expect.any(Number) } })
  })
})

describe('the token of this machine', () => {
  test('is made once, for its user only, and used again', async () => {
    const localTokenFile = join(folder, 'state', 'legate', 'serve.token')
    const first = createRuntime()
    const one = await serve(first, { port: 0, localTokenFile })
    const second = createRuntime()
    chmodSync(localTokenFile, 0o644)
    const two = await serve(second, { port: 0, localTokenFile })

    expect(two.token).toBe(one.token)
    expect(readFileSync(localTokenFile, 'utf8').trim()).toBe(one.token)
    expect(statSync(localTokenFile).mode & 0o777).toBe(0o600)
    const answer = await fetch(`${two.url}/v1`, { headers: { authorization: `Bearer ${one.token}` } })
    expect(await answer.json()).toMatchObject({ principal: { id: 'local', sees: 'all' } })
    for (const each of [one, two, first, second]) await each.close()
  })
})

describe('beyond this machine', () => {
  test('a server needs proof of who asks, and nobody listening in', async () => {
    const runtime = createRuntime()

    await expect(serve(runtime, { port: 0, host: '0.0.0.0' })).rejects.toThrow(
      'Give tls: { cert, key }, or behindProxy: true',
    )
    await expect(serve(runtime, { port: 0, host: '0.0.0.0', behindProxy: true })).rejects.toThrow('legate token add')
    const oidc = { issuer: 'https://id.example', audience: 'legate' }
    const server = await serve(runtime, { port: 0, host: '0.0.0.0', behindProxy: true, oidc })
    expect(server.token).toBe(undefined)
    await server.close()
    await runtime.close()
  })
})

describe('the Unix socket', () => {
  test('belongs to its user, who may do everything', async () => {
    const socket = join(folder, 'legate.sock')
    const runtime = createRuntime({ agents: [greeter] })
    const server = await serve(runtime, { socket })

    expect(statSync(socket).mode & 0o777).toBe(0o600)
    expect(await getOver(socket, '/v1')).toMatchObject({ principal: { id: 'local' } })
    await expect(serve(createRuntime(), { socket })).rejects.toThrow('another process listens')
    await server.close()
    await runtime.close()
    expect(existsSync(socket)).toBe(false)
  })
})

describe('a place where nobody can listen', () => {
  test('on a port in use, and in a folder that is not there, is a plain error that says what to do', async () => {
    const localTokenFile = join(folder, 'taken', 'serve.token')
    await using runtime = createRuntime({ agents: [greeter] })
    await using first = await serve(runtime, { port: 0, localTokenFile })
    const port = Number(new URL(first.url).port)
    const taken = {
      name: 'DefinitionError',
      code: 'definition',
      message: `serve({ host: '127.0.0.1', port: ${port} }): another program listens there. Choose another port, or 0 for any that is free.`,
      cause: { code: 'EADDRINUSE' },
    }
    await using other = createRuntime()

    await expect(serve(other, { port, localTokenFile })).rejects.toMatchObject(taken)
    await expect(serve(other, { socket: join(folder, 'no', 'where.sock') })).rejects.toMatchObject({
      code: 'definition',
      message: expect.stringMatching(/where\.sock' }\): (?:its folder does not exist|this process may not listen)/),
    })
    await using second = await serve(other, { port: 0, localTokenFile })
    expect(second.token).toBe(first.token)
  })
})

describe('the path of a Unix socket', () => {
  test.each(['file', 'link to a file', 'link to nothing', 'link to a socket', 'folder'])(
    'is left alone where a %s is',
    async (what) => {
      const place = mkdtempSync(join(folder, 'path-'))
      const [socket, target] = [join(place, 'legate.sock'), join(place, 'target')]
      const other = createServer()
      if (what.endsWith('file')) writeFileSync(what === 'file' ? socket : target, 'mine')
      if (what.endsWith('socket')) await new Promise<void>((resolve) => other.listen(target, resolve))
      if (what.startsWith('link')) symlinkSync(target, socket)
      if (what === 'folder') mkdirSync(socket)
      const before = lstatSync(socket)
      const runtime = createRuntime()

      await expect(serve(runtime, { socket })).rejects.toThrow('it is no socket')
      expect(lstatSync(socket).ino).toBe(before.ino)
      if (what.endsWith('file')) expect(readFileSync(socket, 'utf8')).toBe('mine')
      other.close()
      await runtime.close()
    },
  )

  test('is taken over where a killed server left its socket', async () => {
    const socket = join(folder, 'left.sock')
    const program = `require('node:net').createServer().listen(${JSON.stringify(socket)}, () => process.kill(process.pid, 'SIGKILL'))`
    spawnSync(process.execPath, ['-e', program])
    expect(lstatSync(socket).isSocket()).toBe(true)
    const runtime = createRuntime()

    const server = await serve(runtime, { socket })
    expect(await getOver(socket, '/v1')).toMatchObject({ principal: { id: 'local' } })
    await server.close()
    await runtime.close()
  })
})

describe('inside another program', () => {
  test('the program says who asks', async () => {
    const runtime = createRuntime({ agents: [greeter] })
    const answer = handler(runtime, {
      allowHosts: ['app.example'],
      authenticate: (given) => (given.headers.get('x-user') === 'ann' ? ann : null),
    })
    const ask = (headers: Record<string, string>) => answer(new Request('https://app.example/v1', { headers }))

    expect((await ask({})).status).toBe(401)
    expect(await (await ask({ 'x-user': 'ann' })).json()).toMatchObject({ principal: { id: 'ann' } })
    expect((await answer(new Request('https://evil.example/v1'))).status).toBe(421)
    const start = {
      method: 'POST',
      body: '{"agent":"greeter","input":"Hi"}',
      headers: { 'x-user': 'ann', 'content-type': 'application/json', accept: 'text/event-stream' },
    }
    const stream = await answer(new Request('https://app.example/v1/runs', start))
    const events: string[] = []
    for await (const { event } of framesOf(stream)) events.push(event)
    expect([events[0], events.at(-1)]).toEqual(['hello', 'end'])
    await runtime.close()
  })
})

function getOver(socketPath: string, path: string): Promise<unknown> {
  return new Promise((resolve, reject) => {
    request({ socketPath, path }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (part) => {
        text += part
      })
      answer.on('end', () => resolve(JSON.parse(text)))
    })
      .on('error', reject)
      .end()
  })
}

test('a mistake of the program that every request meets is one warning', async () => {
  const runtime = createRuntime()
  onTestFinished(() => runtime.close())
  const answer = handler(runtime, { authenticate: () => ({ id: 'ann', scopes: ['reed'] }) as never })
  const warnings: string[] = []
  const hear = ({ message }: Error) => warnings.push(message)
  process.on('warning', hear)
  onTestFinished(() => void process.off('warning', hear))
  for (let at = 0; at < 50; at++) {
    expect((await answer(new Request('http://localhost/v1/runs'))).status).toBeGreaterThanOrEqual(400)
  }
  await new Promise(setImmediate)
  expect(warnings).toEqual([expect.stringContaining('reed')])
})
