import { type ChildProcess, spawn } from 'node:child_process'
import { existsSync, readdirSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { beforeEach, describe, expect, test } from 'vitest'
import { tempFolder } from '../../support/temp-folder.ts'

const program = path.resolve(import.meta.dirname, '../../../dist/cli/main.js')

let folder = ''
beforeEach(({ skip }) => {
  skip(!existsSync(program), 'dist is not built: npm run build')
  folder = tempFolder()
})

describe('legate demo', () => {
  test('is killed in the middle, comes back, and repeats nothing that had finished', async () => {
    const started = performance.now()

    const { code, stdout, stderr } = await run(['demo'])

    expect(stderr).toBe('')
    expect(code).toBe(0)
    expect(performance.now() - started).toBeLessThan(20_000)
    const counts = /(\d+) nodes called a model or a tool, (\d+) times in all/.exec(stdout)
    const kept = /(\d+) of them had finished before the kill: (\d+) ran twice\./.exec(stdout)
    const interrupted = /(\d+) of them were interrupted by it: (\d+) ran again\./.exec(stdout)
    expect(numbers(counts)[0]).toBe(19)
    expect(numbers(kept)[0]).toBeGreaterThan(0)
    expect(numbers(kept)[1]).toBe(0)
    expect(numbers(interrupted)[0]).toBeGreaterThan(0)
    expect(numbers(interrupted)[1]).toBe(numbers(interrupted)[0])
    expect(numbers(counts)[1]).toBe(19 + Number(numbers(interrupted)[1]))
    expect(stdout).toMatch(/The run ended completed after [\d.]+ s and 2 processes\./)
    expect(stdout.trimEnd().split('\n').at(-1)).toMatch(/^Try next: examples\//)
    expect(stdout).not.toContain('\u001b')
    const [, store = ''] = /node \S*main\.js serve --store (\S+)/.exec(stdout) ?? []
    expect(path.dirname(path.dirname(store))).toBe(folder)
    const served = await servedRuns(store)
    expect(served.runs).toMatchObject([{ agent: 'lead', status: 'completed' }])
    expect(served.page).toContain('<title>')
  })

  test('ends both processes and leaves no file behind when it is interrupted', async () => {
    const child = start(['demo'])
    const ended = Promise.all([exitCode(child), text(child.stderr as NodeJS.ReadableStream)])
    await waitForText(child, 'delegates to scout')

    child.kill('SIGINT')

    // The worker writes to the same stderr: the text is complete only when both are gone.
    expect(await ended).toEqual([130, ''])
    expect(readdirSync(folder)).toEqual([])
  })
})

describe('legate', () => {
  test('tells its version and its commands', async () => {
    expect((await run(['--version'])).stdout).toMatch(/^\d+\.\d+\.\d+\n$/)
    for (const args of [[], ['help'], ['--help'], ['-h']]) {
      expect(await run(args)).toMatchObject({ code: 0, stdout: expect.stringContaining('demo') })
    }
  })

  test('refuses what it does not know, on stderr, with exit code 2', async () => {
    for (const args of [['nonsense'], ['--nonsense'], ['demo', 'more'], ['demo-worker', folder]]) {
      const { code, stdout, stderr } = await run(args)

      expect({ code, stdout }).toEqual({ code: 2, stdout: '' })
      expect(stderr).toMatch(/^legate: .+ See legate (demo )?--help\.\n$/)
    }
  })
})

/** What the command that the demo names last gives: the runs of its store, and the page. */
async function servedRuns(store: string): Promise<{ readonly runs: unknown; readonly page: string }> {
  const server = start(['serve', '--store', store, '--port', '0'], { XDG_STATE_HOME: folder })
  const ended = exitCode(server)
  try {
    const [base = '', token = ''] = (await waitForText(server, '\n')).trim().split('/#token=')
    const answer = await fetch(`${base}/v1/runs`, { headers: { authorization: `Bearer ${token}` } })
    const { runs } = (await answer.json()) as { runs: unknown }
    return { runs, page: await (await fetch(base)).text() }
  } finally {
    server.kill('SIGTERM')
    await ended
  }
}

function start(args: readonly string[], more: NodeJS.ProcessEnv = {}): ChildProcess {
  const env = { ...process.env, TMPDIR: folder, TMP: folder, TEMP: folder, ...more }
  return spawn(process.execPath, [program, ...args], { cwd: tmpdir(), env, stdio: ['ignore', 'pipe', 'pipe'] })
}

async function run(args: readonly string[]) {
  const child = start(args)
  const [code, stdout, stderr] = await Promise.all([
    exitCode(child),
    text(child.stdout as NodeJS.ReadableStream),
    text(child.stderr as NodeJS.ReadableStream),
  ])
  return { code, stdout, stderr }
}

function exitCode(child: ChildProcess): Promise<number | null> {
  return new Promise((resolve) => child.once('exit', resolve))
}

function numbers(found: RegExpExecArray | null): number[] {
  return (found ?? []).slice(1).map(Number)
}

async function waitForText(child: ChildProcess, wanted: string): Promise<string> {
  let seen = ''
  for await (const chunk of child.stdout ?? []) {
    seen += chunk
    if (seen.includes(wanted)) return seen
  }
  throw new Error(`It ended without saying "${wanted}": ${seen}`)
}
