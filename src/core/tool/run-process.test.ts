import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { PROMPTLY_MS } from '../../../test/support/pace.ts'
import { tempFolder } from '../../../test/support/temp-folder.ts'
import { LegateError } from '../base/error.ts'
import { type ProcessOptions, runProcess } from './run-process.ts'

const never = new AbortController().signal

function sh(script: string, options: Partial<ProcessOptions> = {}) {
  return runProcess('sh', ['-c', script], { signal: never, ...options })
}

let marks = 0

/** A word that only the processes of one test have in their command lines. */
function mark(): string {
  return `legate-mark-${process.pid}-${marks++}`
}

function running(word: string): string[] {
  return readdirSync('/proc').filter((pid) => {
    if (!/^\d+$/.test(pid)) return false
    try {
      const command = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      return command.includes(word) && !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    } catch {
      return false
    }
  })
}

async function until(check: () => boolean, what: string): Promise<void> {
  for (const giveUpAt = Date.now() + 5_000; !check(); await sleep(5)) {
    if (Date.now() > giveUpAt) throw new Error(`waited for: ${what}`)
  }
}

/** A program, its child and its grandchild, all of which go on for a minute; the last one says that it is there. */
function family(word: string, own = ''): string {
  const child = `sh -c 'echo > ready; sleep 60; : ${word}' & sleep 60; : ${word}`
  return `${own} sh -c "${child}" & sleep 60; : ${word}`
}

describe('a program that ends by itself', () => {
  test('gives what it printed and its exit code', async () => {
    expect(await sh('echo out; echo err >&2; exit 3')).toEqual({
      exitCode: 3,
      stdout: 'out\n',
      stderr: 'err\n',
      isCut: false,
      timedOut: false,
    })
  })

  test('gets its arguments as they are, its input, folder and environment', async () => {
    const { stdout } = await runProcess('printf', ['%s|', '$HOME', '`x`', '-s', "it's", ''], { signal: never })
    expect(stdout).toBe("$HOME|`x`|-s|it's||")
    const asked = await sh('cat; pwd; echo $WHO', { input: 'in\n', cwd: '/', env: { WHO: 'me' } })
    expect(asked.stdout).toBe('in\n/\nme\n')
  })

  test('need not read its input', async () => {
    expect(await sh('exit 0', { input: 'x'.repeat(1_000_000) })).toMatchObject({ exitCode: 0 })
  })

  test('a program that is not there, or was killed, is told as a shell tells it', async () => {
    expect(await runProcess('no-such-program', [], { signal: never })).toMatchObject({
      exitCode: 127,
      stderr: expect.stringContaining('not found'),
    })
    expect(await sh('kill -9 $$')).toMatchObject({ exitCode: 137, stderr: '' })
  })

  test('leaves nothing running: what it put into the background is killed', async () => {
    const word = mark()

    const { exitCode } = await sh(`sh -c 'sleep 60; : ${word}' & exit 0`)

    expect(exitCode).toBe(0)
    await until(() => running(word).length === 0, 'the background process to end')
  })

  test('prints as much as it likes: the beginning is kept, whole characters only', async () => {
    const result = await sh('yes é | head -c 3000000; yes é | head -c 30 >&2', { maxOutputBytes: 100 })
    expect(result).toMatchObject({ exitCode: 0, isCut: true })
    expect(result.stdout).toBe(`${'é\n'.repeat(33)}`)
    expect(result.stderr).toBe('é\n'.repeat(10))
  })
})

describe('a program that is asked to stop', () => {
  test('is ended with everything it started, and the call says why', async () => {
    const word = mark()
    const controller = new AbortController()
    const cwd = tempFolder()
    const call = sh(family(word), { signal: controller.signal, cwd })
    await until(() => readdirSync(cwd).includes('ready'), 'the family to start')
    expect(running(word).length).toBeGreaterThanOrEqual(3)
    const began = performance.now()

    controller.abort(new Error('enough'))

    await expect(call).rejects.toThrow('enough')
    expect(performance.now() - began).toBeLessThan(PROMPTLY_MS)
    expect(running(word)).toEqual([])
  })

  test('may clean up first', async () => {
    const controller = new AbortController()
    const folder = tempFolder()
    const call = sh('trap "echo cleaned > note; exit 0" TERM; echo > ready; sleep 60 & wait', {
      signal: controller.signal,
      cwd: folder,
    })
    await until(() => readdirSync(folder).includes('ready'), 'the program to be ready')

    controller.abort(new Error('enough'))
    await expect(call).rejects.toThrow('enough')

    expect(readFileSync(path.join(folder, 'note'), 'utf8')).toBe('cleaned\n')
  })

  test('and does not is killed, with its children that do not either', async () => {
    const word = mark()
    const controller = new AbortController()
    const cwd = tempFolder()
    const call = sh(family(word, 'trap "" TERM;'), { signal: controller.signal, killAfterMs: 100, cwd })
    await until(() => readdirSync(cwd).includes('ready'), 'the family to start')
    const began = performance.now()

    controller.abort(new Error('enough'))

    await expect(call).rejects.toThrow('enough')
    expect(performance.now() - began).toBeGreaterThan(90)
    expect(running(word)).toEqual([])
  })

  test('before it was started is not started', async () => {
    const word = mark()
    await expect(sh(`: ${word}`, { signal: AbortSignal.abort(new Error('too late')) })).rejects.toThrow('too late')
    expect(running(word)).toEqual([])
  })

  test('is ended when it takes too long, and what it printed is kept', async () => {
    const word = mark()
    const result = await sh(`echo first; ${family(word)}`, { timeoutMs: 150, cwd: tempFolder() })
    expect(result).toMatchObject({ stdout: 'first\n', timedOut: true })
    expect(result.exitCode).toBeGreaterThan(128)
    expect(running(word)).toEqual([])
  })
})

test('what a program printed is kept although this process was busy when it ended', async () => {
  const printed = sh('sleep 0.3; echo here')
  await sleep(100)
  // The end of this one is told after what it printed, and with it that of all others that have ended by then.
  const other = spawn('echo', ['x'])
  other.stdout.on('data', () => beBusy(800))
  other.once('exit', () => beBusy(300))
  beBusy(100)

  expect(await printed).toMatchObject({ exitCode: 0, stdout: 'here\n' })
})

function beBusy(ms: number): void {
  for (const until = performance.now() + ms; performance.now() < until; );
}

describe('what cannot be started', () => {
  test.each([
    ['a folder that is not there', 'echo', ['x'], { cwd: '/no/such/folder' }, /in \/no\/such\/folder \(is that folder/],
    ['an argument with a NUL', 'echo', ['a\0b'], {}, /^A command line cannot hold a NUL character/],
    ['a name that looks like an option', '-c', ['id'], {}, /^"-c" is not a name of a program/],
    ['an argument that is too long', 'echo', ['x'.repeat(1_900_000)], {}, /^echo could not be started: .*E2BIG/],
    [
      'a line that no system takes',
      'echo',
      ['x'.repeat(3_000_000)],
      {},
      /^A command line has at most 2000000 characters/,
    ],
  ])('%s is an error that says so', async (_, command, args, options, message) => {
    const call = runProcess(command, args, { signal: never, ...options })
    await expect(call).rejects.toThrow(message)
    await expect(call).rejects.toBeInstanceOf(LegateError)
  })
})
