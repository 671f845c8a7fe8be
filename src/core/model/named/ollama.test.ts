import { afterEach, expect, test, vi } from 'vitest'
import { ollamaUrl } from './providers.ts'

afterEach(() => {
  vi.unstubAllEnvs()
})

test.each([
  ['', 'http://127.0.0.1:11434'],
  ['host', 'http://host:11434'],
  ['host:', 'http://host:11434'],
  ['host:80', 'http://host'],
  [':8080', 'http://127.0.0.1:8080'],
  ['host:8080/base/', 'http://host:8080/base'],
  ['http://host:8080/', 'http://host:8080'],
  ['http://host', 'http://host'],
  ['https://host', 'https://host'],
  ['0.0.0.0', 'http://127.0.0.1:11434'],
  ['[::]:8080', 'http://127.0.0.1:8080'],
  ['::1', 'http://[::1]:11434'],
  ['[::1]:8080', 'http://[::1]:8080'],
  [' "host:8080" ', 'http://host:8080'],
  ['http://', 'http://127.0.0.1'],
  ['not an address', 'http://127.0.0.1:11434'],
])('OLLAMA_HOST=%j is %s', (host, url) => {
  vi.stubEnv('OLLAMA_HOST', host)

  expect(ollamaUrl()).toBe(url)
})
