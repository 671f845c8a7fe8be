import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { runInNewContext } from 'node:vm'
import { gzipSync } from 'node:zlib'
import { build } from 'tsdown'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { figure } from '../crash/support/figure.ts'
import { tempFolder } from '../support/temp-folder.ts'

const door = fileURLToPath(new URL('../../src/server/client/index.ts', import.meta.url))

let code = ''

beforeAll(async () => {
  const outDir = tempFolder(afterAll)
  const form = { format: 'esm', platform: 'browser', target: 'es2022', minify: true, dts: false } as const
  const all = { alwaysBundle: [/.*/] }
  await build({ ...form, config: false, entry: [door], outDir, clean: false, logLevel: 'silent', deps: all })
  const files = readdirSync(outDir)
  expect(files).toHaveLength(1)
  code = readFileSync(path.join(outDir, files[0] ?? ''), 'utf8')
}, 60_000)

test('the client as a bundle for browsers has at most 15 kB', () => {
  const bytes = gzipSync(code, { level: 9 }).length
  figure('client for browsers', `${(bytes / 1_000).toFixed(1)} kB gzip, ${(code.length / 1_000).toFixed(1)} kB`)

  expect(bytes).toBeLessThanOrEqual(15_000)
})

test('the client imports nothing: no module of Node, no package', () => {
  expect(code).not.toMatch(/\bfrom\s*["'`]|(?<!\/)\bimport\s*["'`{*]|["'`]node:|require\(|process\.|Buffer\b/)
})

test('the client runs where there is nothing of Node', async () => {
  const script = code.replace(/export\s*\{([^}]*)\}\s*;?\s*$/, (_, names: string) => {
    const pairs = names.split(',').map((one) => one.trim().split(/\s+as\s+/))
    return `;({ ${pairs.map(([own = '', name = own]) => `${name}: ${own}`).join(', ')} })`
  })
  const fetch = async () => ({ ok: true, status: 200, text: async () => '{"version":"1"}' })
  const globals = { URL, URLSearchParams, TextDecoder, AbortController, setTimeout, clearTimeout, fetch }
  const client = runInNewContext(script, { ...globals, globalThis: { fetch } }) as typeof import('legate/client')

  expect(await client.connect({ url: 'https://example.com' }).info()).toEqual({ version: '1' })
  expect(client.treeOf(client.emptyTree(), 'none')).toBeUndefined()
})
