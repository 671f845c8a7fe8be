import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { program, root, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

test.each(['docs/guide/cli.md', 'docs/guide/crash.md'])('the sessions of %s print what they say', (page) => {
  const text = readFileSync(path.join(root, page), 'utf8')
  const session = new Session()
  for (const [, name = '', code = ''] of text.matchAll(/^```js\n\/\/ (\S+)\n(.*?)^```$/gms)) session.write(name, code)
  const blocks = [...text.matchAll(/^```console\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const steps = blocks.flatMap((block) => block.split(/^\$ /m).slice(1))

  expect(steps.length).toBeGreaterThan(4)
  for (const step of steps) {
    const [command = '', ...expected] = step.trimEnd().split('\n')
    const printed = session.run(command).trimEnd()
    const wanted = expected.join('\n').trimEnd()
    session.learn(wanted, printed)
    expect({ command, printed: plain(printed) }).toEqual({ command, printed: plain(wanted) })
  }
})

/** A shell in a folder of its own, in which `legate` is the built program. Ids on the page stand for real ones. */
class Session {
  private readonly folder: string
  private readonly ids: Map<string, string> = new Map()
  private exports = ''
  private lastCode = 0

  constructor() {
    // Inside the package, so that `legate` means the package itself.
    this.folder = tempFolder(onTestFinished, path.join(root, 'dist'))
    this.write('bin/legate', `#!/bin/sh\nexec "${process.execPath}" "${program}" "$@"\n`)
    chmodSync(path.join(this.folder, 'bin/legate'), 0o755)
  }

  write(name: string, text: string): void {
    mkdirSync(path.dirname(path.join(this.folder, name)), { recursive: true })
    writeFileSync(path.join(this.folder, name), text)
  }

  /** Everything the command prints, on either stream. */
  run(command: string): string {
    if (command.startsWith('export ')) {
      this.exports += `${command}\n`
      return ''
    }
    if (command === 'echo $?') return String(this.lastCode)
    const real = [...this.ids].reduce((line, [shown, id]) => line.replaceAll(shown, id), command)
    const env = { PATH: `${this.folder}/bin:${path.dirname(process.execPath)}:${process.env['PATH']}` }
    const script = `${this.exports}(${real}) > printed 2>&1; echo $? > code`
    execFileSync('bash', ['-c', script], { cwd: this.folder, env, stdio: 'ignore' })
    this.lastCode = Number(readFileSync(path.join(this.folder, 'code'), 'utf8'))
    return readFileSync(path.join(this.folder, 'printed'), 'utf8')
  }

  /** Ids stand in the same places. */
  learn(shown: string, printed: string): void {
    const [ours, theirs] = [shown, printed].map((text) => text.match(SHORT_ID) ?? [])
    for (const [at, id] of (ours ?? []).entries()) if (theirs?.[at] !== undefined) this.ids.set(id, theirs[at])
  }
}

const SHORT_ID = /\b[0-9a-f]{8}\b/g

/** Without what differs every time: ids, numbers, folders, how wide columns are. */
function plain(text: string): string {
  return text
    .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'ID')
    .replaceAll(SHORT_ID, 'id')
    .replaceAll(/note: .*/g, 'note: ...')
    .replaceAll(/\/\S+\/(?=\w+\.db)/g, '/')
    .replaceAll(/\d+m \d+s|\d+(\.\d+)? (s|min|h)\b/g, 'TIME')
    .replaceAll(/\d+(\.\d+)?k?/g, '0')
    .replaceAll(/[ \t]+/g, ' ')
}
