// The deterministic simulation: several processes on a bad network, with wrong clocks, that die, sleep and are cut off. The ledger,
// the rules, the replicas of trees, the engine and the readers are the real ones; time, chance and the network come from a seed.

import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildSimulation } from './build.mjs'
import type { Report } from './players.ts'
import { HAPPENINGS } from './world.ts'

const isFull = process.env['LEGATE_FULL'] === '1'
const SEEDS = isFull ? 1_000_000 : 20_000
/** Where the machine is too slow for all seeds, those count that fit into this time; never fewer than these. */
const SECONDS = isFull ? 2_400 : 20
const FEWEST = isFull ? 100_000 : 800
const PATIENCE_MS = isFull ? 5_000_000 : 240_000

let file = ''
beforeAll(async () => {
  file = await buildSimulation()
}, PATIENCE_MS)
afterAll(() => rmSync(path.dirname(file), { recursive: true, force: true }))

async function output(args: readonly string[], seconds = PATIENCE_MS): Promise<string> {
  const env = { ...process.env, SIM_SECONDS: String(seconds) }
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...args], { env, maxBuffer: 10_000_000 })
  return stdout
}

async function play(args: readonly string[], seconds?: number): Promise<Report> {
  return JSON.parse(await output(args, seconds)) as Report
}

/** How many of 100 seeds saw each kind of trouble. */
function sharesOf({ seeds, shares }: Report): string {
  return HAPPENINGS.map((one) => `${one} ${(((shares[one] ?? 0) / seeds) * 100).toFixed(1)}`).join(', ')
}

test('a seed gives the same story whatever was played before it', { timeout: PATIENCE_MS }, async () => {
  const [forwards, backwards] = await Promise.all([play(['1', '60', '--part']), play(['1', '60', '--backwards'])])
  const { ms, cpuMs, ...story } = forwards

  expect(backwards).toMatchObject(story)
  expect(story).toMatchObject({ seeds: 60, mark: expect.any(Number) })
  expect(story.failure).toBeUndefined()
})

test(`no law is broken in ${SEEDS} seeds, or in as many as ${SECONDS} s allow`, { timeout: PATIENCE_MS }, async () => {
  const report = await play(['1', `${SEEDS}`], SECONDS)
  const { seeds, commits, recoveries, cpuMs, failure, shares } = report
  console.log(`simulation: ${seeds} seeds, ${commits} commits, ${recoveries} recoveries, ${cpuMs} ms of CPU`)
  console.log(`simulation, of 100 seeds: ${sharesOf(report)}`)

  expect(failure).toBeUndefined()
  expect(seeds).toBeGreaterThanOrEqual(FEWEST)
  expect(HAPPENINGS.filter((one) => (shares[one] ?? 0) < seeds / 100)).toEqual([])
})

test('each planted defect is found, and one line repeats it', { timeout: PATIENCE_MS }, async () => {
  const lines = (await output(['1', '20000', 'each'])).trim().split('\n')
  const found = lines.map((line) => JSON.parse(line) as Report & { readonly bug: string })

  expect(found.map(({ bug }) => bug)).toEqual(['epoch', 'wake', 'answer', 'replica', 'lease'])
  for (const one of found) {
    expect(one).toMatchObject({ failure: { law: expect.any(String) }, again: expect.any(String), healthy: null })
  }
})
