import { describe, expect, test } from 'vitest'
import { readHookUrl, resolveHook } from './address.ts'
import { postHook } from './post.ts'

const OPEN = ['https://hooks.example/x?y=1', 'https://93.184.216.34/', 'https://[2606:2800:220:1::1]:8443/a']

const CLOSED = [
  ...['http://hooks.example/', 'ftp://hooks.example/', 'file:///etc/passwd', 'javascript:alert(1)', 'x', ''],
  ...['https://ann:secret@hooks.example/', 'https://ann@hooks.example/', 'https://hooks.example/#part'],
  ...['https://127.0.0.1/', 'https://127.1/', 'https://2130706433/', 'https://0x7f.0.0.1/', 'https://0177.0.0.1/'],
  ...['https://0.0.0.0/', 'https://10.1.2.3/', 'https://172.31.0.1/', 'https://192.168.1.1/', 'https://100.64.0.1/'],
  ...['https://169.254.169.254/latest/meta-data', 'https://224.0.0.1/', 'https://255.255.255.255/'],
  ...['https://[::1]/', 'https://[::]/', 'https://[::ffff:127.0.0.1]/', 'https://[::ffff:7f00:1]/'],
  ...[
    'https://[::ffff:93.184.216.34]/',
    'https://[::127.0.0.1]/',
    'https://[64:ff9b::7f00:1]/',
    'https://[2002:7f00:1::]/',
  ],
  ...[
    'https://[fe80::1]/',
    'https://[fc00::1]/',
    'https://[fd00:ec2::254]/',
    'https://[ff02::1]/',
    'https://[2001:db8::1]/',
  ],
  ...['https://\u{ff11}27.0.0.1/', `https://hooks.example/${'x'.repeat(2_000)}`],
]

describe('the URL of a webhook', () => {
  test.each(OPEN)('%s is taken', (url) => {
    expect(readHookUrl(url, false).href).toBe(new URL(url).href)
  })

  test.each(CLOSED)('%s is refused', (url) => {
    expect(() => readHookUrl(url, false)).toThrow('A webhook does not go there.')
  })

  test('where private addresses are allowed, http goes to this machine only', async () => {
    expect(readHookUrl('http://127.0.0.1:8080/', true).port).toBe('8080')
    expect(readHookUrl('https://10.0.0.1/', true).hostname).toBe('10.0.0.1')
    expect(() => readHookUrl('http://10.0.0.1/', true)).toThrow('Only https leaves this machine.')
    const names = { allowPrivate: true, signal }
    await expect(resolveHook(new URL('http://localhost/'), names)).resolves.toMatchObject({
      family: expect.any(Number),
    })
  })
})

const { signal } = new AbortController()
const OPEN_ADDRESSES = ['93.184.216.34', '2606:2800:220:1::1']
const CLOSED_ADDRESSES = [
  ...['127.0.0.1', '10.1.2.3', '100.100.1.1', '169.254.169.254', '192.31.196.1', '192.52.193.1', '192.175.48.6'],
  ...['::1', '::7f00:1', '::ffff:127.0.0.1', '::ffff:0:127.0.0.1', '::ffff:0:93.184.216.34', '64:ff9b::a00:1'],
  ...['64:ff9b:1::a00:1', '100::1', '100:0:0:1::1', '1::1', '4000::1', '5f00::1', '8000::1', 'fc00::1', 'fe80::1'],
  ...['fec0::1', 'ff02::1', '2001::1', '2001:20::1', '2001:db8::1', '2002:a00:1::', '2620:4f:8000::1', '3ffe::1'],
  ...['3fff::1', '2400::5efe:a00:1', '2400:1:2:3:200:5efe:a00:1'],
]

describe('the addresses that a name stands for', () => {
  const sent = (url: string, addresses: () => Promise<readonly string[]>) =>
    resolveHook(new URL(url), { allowPrivate: false, signal, addressesOf: addresses }).then(
      ({ address }) => address,
      (error: Error) => error.message,
    )

  test.each(OPEN_ADDRESSES)('%s is reached', async (address) => {
    expect(await sent('https://hooks.example/', async () => [address])).toBe(address)
  })

  test.each(CLOSED_ADDRESSES)('%s is not reached, nor whatever else has the same name', async (address) => {
    const [alone, among] = [
      await sent('https://hooks.example/', async () => [address]),
      await sent('https://hooks.example/', async () => ['93.184.216.34', address]),
    ]
    expect(alone).toMatch('no address that webhooks may go to')
    expect(among).toBe(alone)
  })

  test('an unknown name, one without an address, and one of a private network give the same words', async () => {
    const unknown = Object.assign(new Error('getaddrinfo ENOTFOUND intranet.example'), { code: 'ENOTFOUND' })
    const answers = [
      await sent('https://db.intranet.example/', async () => ['10.1.2.3']),
      await sent('https://db.intranet.example/', async () => []),
      await sent('https://db.intranet.example/', () => Promise.reject(unknown)),
    ]
    expect(new Set(answers).size).toBe(1)
    expect(answers[0]).not.toMatch(/10\.1\.2\.3|ENOTFOUND|intranet|private/)
  })
})

test('a name of this machine and a name that nobody knows are refused alike', async () => {
  const posted = (url: string) =>
    postHook({ url, headers: {}, body: '{}', timeoutMs: 5_000, allowPrivate: false, signal })
  const local = await posted('https://localhost:1/')
  expect(local).toEqual({ error: expect.stringContaining('no address that webhooks may go to') })
  expect(await posted('https://nobody.invalid/')).toEqual(local)
})

test('the time for a request is bounded, and so is that for a name', async () => {
  const post = {
    url: 'https://nobody.invalid/',
    headers: {},
    body: '{}',
    timeoutMs: 2_000,
    allowPrivate: false,
    signal,
  }
  expect(await postHook(post)).toEqual({ error: expect.any(String) })
})
