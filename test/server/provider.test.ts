import { createSign, generateKeyPairSync } from 'node:crypto'
import { createRuntime, type Principal } from 'legate'
import { type HandlerOptions, handler } from 'legate/server'
import { beforeAll, describe, expect, test } from 'vitest'
import { startProvider } from './support/provider.ts'
import { Receiver } from './support/receiver.ts'
import { startServer } from './support/server.ts'

describe('tokens of a provider', () => {
  test('say who asks where issuer, audience, key and time are right', async () => {
    const { url, sign, close } = await startProvider()
    await using setting = await startServer({
      oidc: { issuer: url, audience: 'legate' },
      limits: { failuresPerMinute: 100 },
    })
    const status = async (token: string) => (await setting.get('/v1', { token })).status

    const good = await sign({ scope: 'read start' })
    const who = await setting.get('/v1', { token: good })
    expect(await who.json()).toMatchObject({ principal: { id: `${url}|u1`, scopes: ['start', 'read'] } })
    expect(await status(await sign({}, { audience: 'other' }))).toBe(401)
    expect(await status(await sign({}, { issuer: 'https://other.example' }))).toBe(401)
    expect(await status(await sign({}, { expires: -120 }))).toBe(401)
    expect(await status(await sign({}, { expires: -30 }))).toBe(200)
    expect(await status(await sign({}, { algorithm: 'RS512' }))).toBe(401)
    expect(await status(await sign({}, { algorithm: 'HS256' }))).toBe(401)
    const [head, body] = good.split('.')
    expect(await status(`${head}.${body}.`)).toBe(401)
    const none = Buffer.from('{"alg":"none"}').toString('base64url')
    expect(await status(`${none}.${body}.`)).toBe(401)
    await close()
  })

  test('need a whole time to end, a subject, and to be meant for this', async () => {
    const { url, sign, close } = await startProvider()
    const limits = { failuresPerMinute: 100 }
    await using setting = await startServer({ oidc: { issuer: url, audience: 'legate' }, limits })
    const status = async (claims: object, typ?: string) => {
      const token = await sign(claims, typ === undefined ? {} : { typ })
      return (await setting.get('/v1', { token })).status
    }
    const now = Math.floor(Date.now() / 1_000)

    expect([await status({}), await status({}, 'JWT'), await status({}, 'at+jwt')]).toEqual([200, 200, 200])
    for (const typ of ['logout+jwt', 'dpop+jwt', 'secevent+jwt']) expect(await status({}, typ)).toBe(401)
    for (const exp of [1e300, now + 60.5, String(now + 60), 2 ** 60]) expect(await status({ exp })).toBe(401)
    for (const sub of ['', ' ', 7, null, ['u1'], { id: 1 }, '\ud800']) expect(await status({ sub })).toBe(401)
    await close()
  })

  test('are answered 503 while the provider is away, and taken when it is back', async () => {
    const { url, sign, state, close } = await startProvider()
    const reported: unknown[] = []
    const report = (error: unknown) => reported.push(error)
    await using setting = await startServer({ oidc: { issuer: url, audience: 'legate' }, report })
    const token = await sign({})
    const away = async () => {
      const answer = await setting.get('/v1', { token })
      expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
      expect(await answer.json()).toMatchObject({ code: 'unavailable' })
    }

    state.keysStatus = 500
    await away()
    const { asked } = state
    state.keysStatus = 200
    for (let tries = 0; tries < 3; tries++) await away()
    expect([state.asked, reported.length]).toEqual([asked, 1])
    const status = async () => (await setting.get('/v1', { token })).status
    await expect.poll(status, { timeout: 8_000, interval: 1_000 }).toBe(200)
    await close()
    await using other = await startServer({ oidc: { issuer: url, audience: 'legate' }, report })
    const answer = await other.get('/v1', { token })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([503, '5'])
    expect(reported).toHaveLength(2)
  })

  test('are taken although other keys of the provider cannot be used, and one that names such a key stops nobody', async () => {
    const { url, sign, state, close } = await startProvider()
    const reported: unknown[] = []
    const warnings: string[] = []
    const warned = ({ message }: Error) => warnings.push(message)
    process.on('warning', warned)
    await using setting = await startServer({
      oidc: { issuer: url, audience: 'legate' },
      report: (error) => reported.push(error),
      limits: { failuresPerMinute: 100 },
    })
    const weak = generateKeyPairSync('rsa', { modulusLength: 1_024 })
    const whole = generateKeyPairSync('rsa', { modulusLength: 2_048 }).privateKey.export({ format: 'jwk' })
    state.more = [
      { ...weak.publicKey.export({ format: 'jwk' }), kid: 'weak', alg: 'RS256' },
      { kty: 'RSA', kid: 'empty', alg: 'RS256' },
      { kty: 'EC', crv: 'P-256', kid: 'crooked', x: 'AA', y: 'AA' },
      { ...whole, kid: 'private', alg: 'RS256' },
      { kty: 'OKP', crv: 'Ed25519', kid: 'short', x: 'AA' },
      { kty: 7, kid: { a: 1 } },
      null,
      'no key',
    ]
    const status = async (token: string) => (await setting.get('/v1', { token })).status
    const good = await sign({})
    const naming = (kid: string, alg = 'RS256') => {
      const [, body] = good.split('.')
      const head = Buffer.from(JSON.stringify({ alg, kid })).toString('base64url')
      const signed = createSign('sha256').update(`${head}.${body}`).sign(weak.privateKey).toString('base64url')
      return `${head}.${body}.${signed}`
    }

    for (const kid of ['weak', 'empty', 'private', 'nobody']) expect(await status(naming(kid))).toBe(401)
    expect([await status(naming('crooked', 'ES256')), await status(naming('short', 'EdDSA'))]).toEqual([401, 401])
    expect(await status(good)).toBe(200)
    expect(reported).toEqual([])
    await expect.poll(() => warnings.filter((text) => text.includes('a key that cannot be used')).length).toBe(6)
    expect(warnings.join()).toContain('weak: RS256 requires key modulusLength to be 2048 bits or larger')
    process.off('warning', warned)
    await close()
  })

  test('tokens that cannot be checked count like wrong ones', async () => {
    const { url, sign, close } = await startProvider()
    await close()
    const oidc = { issuer: url, audience: 'legate' }
    await using setting = await startServer({ oidc, report: () => undefined, limits: { failuresPerMinute: 3 } })
    const token = await sign({})

    const statuses: number[] = []
    for (let tries = 0; tries < 5; tries++) statuses.push((await setting.get('/v1', { token })).status)
    expect(statuses).toEqual([503, 503, 503, 429, 429])
    expect((await setting.get('/v1')).status).toBe(200)
  })

  test('are not taken of a provider that says too much', async () => {
    const { url, sign, state, close } = await startProvider()
    const reported: unknown[] = []
    const oidc = { issuer: url, audience: 'legate' }
    await using setting = await startServer({ oidc, report: (error) => reported.push(error) })

    state.padding = 1_000_000
    expect((await setting.get('/v1', { token: await sign({}) })).status).toBe(503)
    expect(String(reported[0])).toMatch('more than 1000000 bytes')
    await close()
  })

  test('make tokens and webhooks that end with them', async () => {
    const { url, sign, close } = await startProvider()
    await using setting = await startServer({ oidc: { issuer: url, audience: 'legate' } })
    const exp = Math.floor(Date.now() / 1_000) + 60
    const token = await sign({ scope: 'read start', exp })
    const make = async (more: object) => {
      const answer = await setting.post('/v1/tokens', { principal: { scopes: ['read'] }, ...more }, { token })
      return ((await answer.json()) as { info: { expiresAt: number } }).info.expiresAt
    }

    expect(await make({})).toBe(exp * 1_000)
    expect(await make({ expiresAt: exp * 1_000 + 1 })).toBe(exp * 1_000)
    expect(await make({ expiresAt: exp * 1_000 - 1 })).toBe(exp * 1_000 - 1)
    const hook = { url: 'https://hooks.example/legate', types: ['run.ended'] }
    expect((await setting.post('/v1/webhooks', hook, { token })).status).toBe(201)
    const rows = await setting.runtime.store.registry.list('webhook', { limit: 10 })
    expect(rows.map(({ data }) => data)).toMatchObject([{ endsAt: exp * 1_000 }])
    await close()
  })

  test('tokens that have ended leave no webhook that hears of anything', async () => {
    const { url, sign, close } = await startProvider()
    await using receiver = await new Receiver().listen()
    const reported: unknown[] = []
    const report = (error: unknown) => reported.push(error)
    await using setting = await startServer({
      oidc: { issuer: url, audience: 'legate' },
      webhooks: { allowPrivate: true },
      report,
    })
    const exp = Math.floor(Date.now() / 1_000) + 3
    const token = await sign({ scope: 'read start', exp })
    const run = () => setting.post('/v1/runs?wait=10', { agent: 'greeter', input: 'x' }, { token })
    await setting.post('/v1/webhooks', { url: receiver.url, types: ['run.ended'] }, { token })
    expect((await run()).status).toBe(200)
    await receiver.until(({ length }) => length === 1)

    await new Promise((resolve) => setTimeout(resolve, exp * 1_000 - Date.now() + 10))
    // Clocks may differ: the login itself is taken for a minute more.
    expect((await run()).status).toBe(200)
    await expect.poll(() => String(reported[0]), { timeout: 5_000 }).toMatch('The login that made it has ended')
    expect(receiver.arrived).toHaveLength(1)
    await close()
  })

  test('tokens that the program cannot make a principal of are its fault', async () => {
    const { url, sign, close } = await startProvider()
    const reported: unknown[] = []
    const principal = () => ({ id: 'x', scopes: ['everything'] }) as unknown as Principal
    const oidc = { issuer: url, audience: 'legate', principal }
    await using setting = await startServer({ oidc, report: (error) => reported.push(error) })

    expect((await setting.get('/v1', { token: await sign({}) })).status).toBe(500)
    expect(String(reported[0])).toMatch('"everything" is no scope')
    await close()
  })
})

/** It takes ten seconds, in which everything else here is tried. */
let unanswered: ReturnType<typeof asked>
beforeAll(() => {
  unanswered = asked(() => new Promise(() => undefined))
})

async function asked(authenticate: unknown) {
  const began = Date.now()
  const runtime = createRuntime()
  const reported: unknown[] = []
  const answer = handler(runtime, {
    allowHosts: ['app.example'],
    authenticate: authenticate as NonNullable<HandlerOptions['authenticate']>,
    report: (error) => reported.push(error),
  })
  const got = await answer(new Request('https://app.example/v1'))
  await runtime.close()
  return { status: got.status, headers: got.headers, text: await got.text(), reported, tookMs: Date.now() - began }
}

describe('a program that says who asks', () => {
  test.each([
    ['a text', () => 'ann'],
    ['nothing', () => undefined],
    ['an unknown scope', () => ({ id: 'ann', scopes: ['all'] })],
    ['no id', () => ({ scopes: [] })],
    ['an id that is not a text', () => ({ id: 7, scopes: [] })],
    [
      'an error',
      () => {
        throw new Error('The secret password is x.')
      },
    ],
    ['a rejection', () => Promise.reject(new TypeError('secret'))],
    ['an undefined rejection', () => Promise.reject()],
  ])('and gives %s is at fault, and the operator hears of it', async (_, authenticate) => {
    const { status, text, reported } = await asked(authenticate)

    expect(status).toBe(500)
    expect(JSON.parse(text)).toMatchObject({ code: 'internal' })
    expect(text).not.toMatch('secret')
    expect(reported).toHaveLength(1)
  })

  test('and never answers does not keep callers waiting', async () => {
    const { status, headers, reported, tookMs } = await unanswered

    expect([status, headers.get('retry-after')]).toEqual([503, '5'])
    expect(tookMs).toBeLessThan(12_000)
    expect(String(reported[0])).toMatch('within 10 seconds')
  }, 20_000)
})
