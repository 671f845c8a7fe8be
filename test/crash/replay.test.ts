import { execFile } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { promisify } from 'node:util'
import { agent, tool } from 'legate'
import { replay, scriptedModel } from 'legate/testing'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { tempFolder } from '../support/temp-folder.ts'
import { recordedTree } from './programs/recorded-tree.ts'
import { programFile } from './support/program.ts'

const run = promisify(execFile)
let program = ''
beforeAll(async () => {
  program = programFile('recording')
})

describe('a recording whose process is killed goes on in the next one', () => {
  test.each(['host 0', 'child 1 0', 'look 2', 'child 2 1', 'pay 1', 'host 2'])(
    'killed at %s: it is played back as it ended',
    async (kill) => {
      const folder = tempFolder()
      const [store, file, effects] = ['rows.db', 'recording.jsonl', 'effects'].map((name) =>
        path.join(folder, name),
      ) as [string, string, string]
      const killed = await run(process.execPath, [program, store, file, effects, kill]).catch((error: unknown) => error)
      expect(killed).toMatchObject({ signal: 'SIGKILL' })
      const { stdout } = await run(process.execPath, [program, store, file, effects])
      const ended = JSON.parse(stdout) as { status: string; text: string; uncertain: number }
      const before = existsSync(effects) ? readFileSync(effects, 'utf8') : ''

      const host = recordedTree({
        agent,
        tool,
        z,
        scriptedModel,
        die: () => {
          throw new Error('a model was called')
        },
        effect: () => {
          throw new Error('a tool was run')
        },
      })
      const runtime = replay(file)
      onTestFinished(() => runtime.close())
      const outcome = await runtime.run(host, 'go').result

      expect({ status: outcome.status, text: outcome.text, uncertain: outcome.uncertain.length }).toEqual(ended)
      expect(ended.uncertain > 0).toBe(kill === 'pay 1')
      expect(before.match(/pay 1/g)).toHaveLength(1)
      runtime.assertComplete()
    },
  )
})
