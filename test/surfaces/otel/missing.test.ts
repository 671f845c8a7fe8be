import { execFile } from 'node:child_process'
import { cpSync, existsSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import { expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../../support/temp-folder.ts'

const dist = path.resolve(import.meta.dirname, '../../../dist')

test.skipIf(!existsSync(dist))('without the API of OpenTelemetry the door says what to install', async () => {
  const folder = tempFolder(onTestFinished)
  // The built package alone: nothing is installed beside it.
  cpSync(dist, path.join(folder, 'dist'), { recursive: true })
  const door = pathToFileURL(path.join(folder, 'dist/surfaces/otel/index.js')).href
  const code = `import(${JSON.stringify(door)}).catch(({ name, code, message }) => console.log(name, code, message))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', code], { cwd: folder })
  expect(stdout).toBe(
    'DefinitionError definition legate/otel needs the package @opentelemetry/api: npm install @opentelemetry/api\n',
  )
})
