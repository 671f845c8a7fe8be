import { cpSync, readdirSync, rmSync } from 'node:fs'
import path from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { dist, runProgram, skipUnlessBuilt } from '../support/program.ts'
import { tempFolder } from '../support/temp-folder.ts'

test('a package that was replaced while a process had it: resume fails, and waits for nothing', async (context) => {
  skipUnlessBuilt(context)
  const folder = tempFolder(onTestFinished, dist)
  for (const { name } of readdirSync(dist, { withFileTypes: true }).filter((entry) => entry.isFile())) {
    cpSync(path.join(dist, name), path.join(folder, name))
  }
  const sweeps = readdirSync(folder).filter((name) => /^sweep-.*\.js$/.test(name))
  expect(sweeps).toHaveLength(1)
  for (const name of sweeps) rmSync(path.join(folder, name))

  const printed = await runProgram(`
    import { createRuntime } from '${path.join(folder, 'index.js')}'
    const runtime = createRuntime()
    await runtime.resume().catch(({ code }) => console.log(code))
    await runtime.close()`)

  expect(printed).toBe('ERR_MODULE_NOT_FOUND\n')
})
