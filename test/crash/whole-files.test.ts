import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { isFull } from './support/full.ts'
import { programFile } from './support/program.ts'

test('a file is the old one or the new one, whole, when its writer is killed', async () => {
  const workspace = tempFolder()
  const program = programFile('write-files')

  for (let round = 0; round < (isFull ? 300 : 8); round++) {
    const writer = spawn(process.execPath, [program, workspace], { stdio: ['ignore', 'pipe', 'inherit'] })
    await once(writer.stdout, 'data')
    await sleep(Math.random() * 40)
    writer.kill('SIGKILL')
    await once(writer, 'exit')

    expect(readFileSync(path.join(workspace, 'file'), 'utf8')).toMatch(
      /^<(?:a{500000}|b{500000}|A{500000}|B{500000})>$/,
    )
  }
})
