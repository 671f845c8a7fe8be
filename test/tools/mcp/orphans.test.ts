import { spawn } from 'node:child_process'
import path from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { skipUnlessBuilt } from '../../cli/support/cli.ts'
import { mark, noneRunning, servers } from './support.ts'

/** The program is a user's: it imports the package. */
beforeEach(skipUnlessBuilt)

test.each(['SIGKILL', 'SIGTERM', 'SIGINT'] as const)(
  'a process that ends by %s leaves no server behind',
  async (signal) => {
    const word = mark()
    const program = path.join(import.meta.dirname, 'programs/host.mjs')
    const server = path.join(import.meta.dirname, 'programs/server.mjs')
    const child = spawn(process.execPath, [program, server, word], { stdio: ['ignore', 'pipe', 'inherit'] })
    onTestFinished(() => {
      child.kill('SIGKILL')
    })
    await new Promise((resolve) => child.stdout.once('data', resolve))
    const before = servers(word)
    child.kill(signal)

    expect(before.length).toBeGreaterThanOrEqual(1)
    await noneRunning(word)
  },
)
