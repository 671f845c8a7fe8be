import { spawnSync } from 'node:child_process'
import path from 'node:path'
import { expect, test } from 'vitest'
import { tempFolder } from '../../support/temp-folder.ts'

const dist = path.resolve(import.meta.dirname, '../../../dist')

/** Runs a program with a store that holds one run of an agent it has no code for, as `id`. */
function ends(program: string): { readonly code: number | null; readonly out: string } {
  const folder = tempFolder()
  const file = JSON.stringify(path.join(folder, 'rows.db'))
  const source = `
    import { agent, createRuntime } from ${JSON.stringify(path.join(dist, 'index.js'))}
    import { sqliteStore } from ${JSON.stringify(path.join(dist, 'stores/sqlite/index.js'))}
    const model = { id: 'a/b', async *stream() { await new Promise(() => undefined) } }
    const first = createRuntime({ store: sqliteStore(${file}), engine: { graceMs: 0 } })
    const run = first.run(agent({ name: 'gone', instructions: '', model }), 'go')
    for await (const event of run) if (event.type === 'message') break
    await first.close()
    const runtime = createRuntime({ store: sqliteStore(${file}) })
    const id = run.id
    ${program}`
  const done = spawnSync(process.execPath, ['--input-type=module', '--eval', source], {
    timeout: 20_000,
    encoding: 'utf8',
  })
  return { code: done.status, out: done.stdout + done.stderr }
}

test('a process that holds a handle of somebody else’s run, and waits for nothing, ends', () => {
  expect(ends(`await runtime.attach(id); await runtime.resume(); console.log('over')`)).toEqual({
    code: 0,
    out: 'over\n',
  })
})

test.each([
  ['its events', 'for await (const event of await runtime.attach(id)) if (event.type === "run-end") break'],
  ['its result', 'await (await runtime.attach(id)).result'],
])('a process that waits for %s of a run stays until the run has given them', (_name, waiting) => {
  const program = `setTimeout(() => runtime.cancel(id), 300).unref(); ${waiting}; console.log('heard')`

  expect(ends(program)).toEqual({ code: 0, out: 'heard\n' })
})
