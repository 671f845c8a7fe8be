// The deterministic simulation: several processes on a bad network, with wrong clocks, that die, sleep and are cut off. The ledger,
// the rules, the replicas of trees, the engine and the readers are the real ones; time, chance and the network come from a seed.

import { execFile } from 'node:child_process'
import { rmSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { buildSimulation } from './build.mjs'

const isFull = process.env['LEGATE_FULL'] === '1'
const SEEDS = isFull ? 1_000_000 : 800
/** Where the machine is too slow for all seeds, those count that fit into this time. */
const SECONDS = isFull ? 14_400 : 60
const PLAYERS = 2
/** The rarest defect is found soon from here, and all others too. Were that no longer so, it would only take longer. */
const FIRST_OF_DEFECTS = isFull ? 1 : 785
const PATIENCE_MS = isFull ? 15_000_000 : 240_000

interface Report {
  readonly seeds: number
  readonly commits: number
  readonly recoveries: number
  readonly moments: number
  readonly failure?: { readonly seed: number; readonly law: string; readonly repeat: string }
}

let file = ''
beforeAll(async () => {
  file = await buildSimulation()
}, PATIENCE_MS)
afterAll(() => rmSync(path.dirname(file), { recursive: true, force: true }))

async function output(args: readonly string[], seconds: number): Promise<string> {
  const env = { ...process.env, SIM_SECONDS: String(seconds) }
  const { stdout } = await promisify(execFile)(process.execPath, [file, ...args], { env, maxBuffer: 10_000_000 })
  return stdout
}

async function play(args: readonly string[], seconds = SECONDS): Promise<Report> {
  return JSON.parse(await output(args, seconds)) as Report
}

test('the same seeds give the same stories', { timeout: PATIENCE_MS }, async () => {
  const counted = async () => {
    const { seeds, commits, recoveries, moments, failure } = await play(['1', '30'], PATIENCE_MS)
    return { seeds, commits, recoveries, moments, failure }
  }
  const [first, second] = await Promise.all([counted(), counted()])

  expect(first).toEqual(second)
  expect(first).toMatchObject({ seeds: 30, failure: undefined })
})

test(`no law is broken in ${SEEDS} seeds, or in as many as ${SECONDS} s allow`, { timeout: PATIENCE_MS }, async () => {
  const share = Math.ceil(SEEDS / PLAYERS)
  const reports = await Promise.all(Array.from({ length: PLAYERS }, (_, at) => play([`${1 + at * share}`, `${share}`])))
  const sum = (key: 'seeds' | 'commits' | 'recoveries') => reports.reduce((all, report) => all + report[key], 0)
  console.log(`simulation: ${sum('seeds')} seeds, ${sum('commits')} commits, ${sum('recoveries')} recoveries`)

  expect(reports.map(({ failure }) => failure)).toEqual(reports.map(() => undefined))
  expect(sum('seeds')).toBeGreaterThan(100)
  expect(sum('recoveries')).toBeGreaterThan(0)
})

test('each planted defect is found, and one line repeats it', { timeout: PATIENCE_MS }, async () => {
  const lines = (await output([`${FIRST_OF_DEFECTS}`, '20000', 'each'], PATIENCE_MS)).trim().split('\n')
  const found = lines.map((line) => JSON.parse(line) as Report & { readonly bug: string })

  expect(found.map(({ bug }) => bug)).toEqual(['epoch', 'wake', 'answer', 'replica', 'lease'])
  for (const one of found) {
    expect(one).toMatchObject({ failure: { law: expect.any(String) }, again: expect.any(String), healthy: null })
  }
})
