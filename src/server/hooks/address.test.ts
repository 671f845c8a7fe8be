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
    await expect(resolveHook(new URL('http://localhost/'), true)).resolves.toMatchObject({ family: expect.any(Number) })
  })
})

test('a name is checked by the addresses that it has', async () => {
  await expect(resolveHook(new URL('https://localhost/'), false)).rejects.toThrow('is an address of a private network')
  const signal = new AbortController().signal
  const post = { url: 'https://localhost:1/', headers: {}, body: '{}', timeoutMs: 5_000, allowPrivate: false, signal }
  expect(await postHook(post)).toEqual({ error: expect.stringContaining('private network') })
})

test('a name that nobody knows is an error, and the time for all of it is bounded', async () => {
  const signal = new AbortController().signal
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
