import { readdirSync, readFileSync, statSync } from 'node:fs'
import path from 'node:path'
import { gzipSync } from 'node:zlib'
import { expect, test } from 'vitest'
import { figure } from '../crash/support/figure.ts'

// What the build made of the page: small, whole, and without anything that its content policy forbids.

const folder = path.resolve(import.meta.dirname, '../../dist/web')
const names = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) =>
  statSync(path.join(folder, name)).isFile(),
)
const served = names.filter((name) => !name.endsWith('.gz'))
const html = text('index.html')

function text(name: string): string {
  return readFileSync(path.join(folder, name), 'utf8')
}

function kilobytes(files: readonly string[], size: (file: string) => number): number {
  return files.reduce((sum, file) => sum + size(file), 0) / 1_000
}

const packed = (name: string) => gzipSync(readFileSync(path.join(folder, name))).length
const unpacked = (name: string) => statSync(path.join(folder, name)).size

test('the first load is small: at most 120 kB, packed', () => {
  const first = [...html.matchAll(/(?:src|href)="\/([^"]+)"/g)].map(([, name = '']) => name)
  const size = kilobytes(['index.html', ...first], packed)
  figure('first load of the inspector', `${size.toFixed(1)} kB packed`)

  expect(first.length).toBeGreaterThan(0)
  expect(size).toBeLessThanOrEqual(120)
})

test('all of it is small: at most 300 kB packed, 1.2 MB with what exports need', () => {
  const size = kilobytes(served, packed)
  const whole = kilobytes(names, unpacked)
  figure('all files of the inspector', `${size.toFixed(1)} kB packed, ${whole.toFixed(0)} kB in the package`)

  expect(size).toBeLessThanOrEqual(300)
  expect(whole).toBeLessThanOrEqual(1_200)
})

test('no script and no style stands in the page itself', () => {
  expect(html).not.toMatch(/<script(?![^>]*\ssrc=)/)
  expect(html).not.toMatch(/<style|\sstyle=|\son\w+=/)
})

test.each(served.filter((name) => name.endsWith('.js')))('%s makes no code of text', (name) => {
  expect(text(name)).not.toMatch(/\beval\(|new Function\(|\bFunction\(['"`]|document\.write/)
})

/** Addresses that are names and never asked for: of XML, and in the words of errors. */
const NAMES = /^https?:\/\/(?:www\.w3\.org\/|react\.dev\/|page\.invalid|file\.invalid|reactflow\.dev)/

test.each(served)('%s names no foreign host', (name) => {
  const hosts = [...text(name).matchAll(/https?:\/\/[\w.-]+[^\s"'`)\\]*/g)].map(([url]) => url)

  expect(hosts.filter((url) => !NAMES.test(url))).toEqual([])
})
