import { readFileSync } from 'node:fs'
import path from 'node:path'
import { expect, test } from 'vitest'
import { VERSION } from './version.ts'

test('the version that is told is that of the package', () => {
  const file = path.join(import.meta.dirname, '../../../../package.json')
  expect(VERSION).toBe((JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version)
})
