import { spawn } from 'node:child_process'
import { lstatSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { LegateError } from 'legate'
import { diskFiles } from 'legate/tools'
import { expect, onTestFinished, test } from 'vitest'
import { HAS_PROC } from '../../src/core/files/held-directory.ts'
import { figure } from '../crash/support/figure.ts'
import { isFull } from '../crash/support/full.ts'
import { tempFolder } from '../support/temp-folder.ts'

const CANARY = 'canary: nobody may read or change this'
const RACE_MS = isFull ? 60_000 : 2_500

test.runIf(HAS_PROC)(
  'no operation leaves the workspace while another process swaps directories, links, pipes and hard links',
  { timeout: RACE_MS + 60_000 },
  async () => {
    const folder = tempFolder()
    const workspace = path.join(folder, 'workspace')
    const outside = path.join(folder, 'outside')
    mkdirSync(path.join(outside, 'deep'), { recursive: true })
    for (const name of ['secret', 'deep/secret']) writeFileSync(path.join(outside, name), CANARY)
    const files = diskFiles({ workspace }).open({ use: ['file.*:/workspace/**'] })
    const stopSwapping = await startSwapping(workspace, outside)
    const figures = { tries: 0, done: 0, refused: 0, slowestMs: 0, naiveEscapes: 0 }
    const seen = new Set<string>()
    const reads = [
      () => files.readText('/workspace/dir/secret'),
      () => files.readText('/workspace/dir/deep/secret'),
      () => files.readText('/workspace/file'),
      () => files.list('/workspace/dir'),
      () => files.stat('/workspace/dir/secret'),
    ]
    const changes = [
      () => files.write('/workspace/dir/secret', 'inside'),
      () => files.write('/workspace/dir/deep/new', 'inside'),
      () => files.write('/workspace/file', 'inside'),
      () => files.edit('/workspace/dir/deep/secret', [{ oldText: 'inside', newText: 'inside' }]),
      () => files.delete('/workspace/dir/deep/new'),
    ]
    const end = Date.now() + RACE_MS
    const attack = async (attacks: readonly (() => Promise<unknown>)[], offset: number) => {
      for (let turn = offset; Date.now() < end; turn++) {
        const start = performance.now()
        try {
          seen.add(JSON.stringify((await attacks[turn % attacks.length]?.()) ?? null))
          figures.done++
        } catch (error) {
          if (!LegateError.isInstance(error) || error.code === 'tool') throw error
          figures.refused++
        }
        figures.tries++
        figures.slowestMs = Math.max(figures.slowestMs, performance.now() - start)
        if (readNaively(path.join(workspace, 'dir', 'secret')) === CANARY) figures.naiveEscapes++
      }
    }

    await Promise.all([attack(reads, 0), attack(reads, 2), attack(reads, 4), attack(changes, 0)])
    await stopSwapping()

    const { tries, done, refused, naiveEscapes } = figures
    const text = `${tries} tries, ${done} done, ${refused} refused, 0 escapes; a check before the opening let ${naiveEscapes} out`
    figure(`S-5, ${RACE_MS / 1000} s of swapping`, text)
    expect([...seen].filter((text) => text.includes('canary'))).toEqual([])
    expect(readdirSync(outside, { recursive: true, encoding: 'utf8' }).sort()).toEqual([
      'deep',
      'deep/secret',
      'secret',
    ])
    for (const name of ['secret', 'deep/secret']) expect(readFileSync(path.join(outside, name), 'utf8')).toBe(CANARY)
    expect(
      readdirSync(workspace, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.tmp')),
    ).toEqual([])
    expect(figures.done).toBeGreaterThan(0)
    expect(figures.refused).toBeGreaterThan(0)
    expect(figures.slowestMs).toBeLessThan(10_000)
    // A check of the path before the path is opened, as a measure of how sharp the race is.
    if (isFull) expect(figures.naiveEscapes).toBeGreaterThan(0)
  },
)

/** Gives what ends it. */
async function startSwapping(workspace: string, outside: string): Promise<() => Promise<void>> {
  const program = path.join(import.meta.dirname, 'programs/swap.mjs')
  const swapper = spawn(process.execPath, [program, workspace, outside], { stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    swapper.kill('SIGKILL')
  })
  await new Promise((resolve, reject) => {
    swapper.stdout.once('data', resolve)
    swapper.once('exit', () => reject(new Error('the swapping process ended')))
  })
  return async () => {
    const ended = new Promise((resolve) => swapper.once('exit', resolve))
    swapper.kill('SIGKILL')
    await ended
  }
}

function readNaively(file: string): string | undefined {
  try {
    return lstatSync(path.dirname(file)).isDirectory() ? readFileSync(file, 'utf8') : undefined
  } catch {
    return undefined
  }
}
