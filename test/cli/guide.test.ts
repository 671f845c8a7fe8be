import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import path from 'node:path'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { tempFolder } from '../support/temp-folder.ts'
import { program, root, skipUnlessBuilt } from './support/cli.ts'

beforeEach(skipUnlessBuilt)

const PAGES = [
  'docs/guide/cli.md',
  'docs/guide/crash.md',
  'docs/guide/serve.md',
  'docs/guide/tokens.md',
  'docs/guide/mcp-server.md',
  'docs/guide/acp.md',
]

test.each(PAGES)('the sessions of %s print what they say', async (page) => {
  const text = readFileSync(path.join(root, page), 'utf8').replaceAll('4747', String(await freePort()))
  const session = new Session()
  for (const [, name = '', code = ''] of text.matchAll(/^```js\n\/\/ (\S+)\n(.*?)^```$/gms)) session.write(name, code)
  const blocks = [...text.matchAll(/^```console\n(.*?)^```$/gms)].map(([, block = '']) => block)
  const steps = blocks.flatMap((block) => block.split(/^\$ /m).slice(1))

  expect(steps.length).toBeGreaterThan(2)
  for (const step of steps) {
    const [command = '', ...expected] = step.trimEnd().split('\n')
    const printed = session.run(command).trimEnd()
    const wanted = expected.join('\n').trimEnd()
    session.learn(wanted, printed)
    expect({ command, printed: plain(printed) }).toEqual({ command, printed: plain(wanted) })
  }
})

/** A port for the server of a page, which is 4747 there. */
function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const probe = createServer().listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { readonly port: number }
      probe.close(() => resolve(port))
    })
  })
}

/** A shell in a folder of its own, in which `legate` is the built program. Ids on the page stand for real ones. */
class Session {
  private readonly folder: string
  private readonly home: string = tempFolder(onTestFinished)
  private readonly ids: Map<string, string> = new Map()
  private exports = ''
  private lastCode = 0
  private steps = 0

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
    const file = `printed${++this.steps}`
    if (command.endsWith(' &')) return this.runBehind(command, file)
    this.bash(`${this.exports}(${real}) > ${file} 2>&1; echo $? > code`)
    this.lastCode = Number(readFileSync(path.join(this.folder, 'code'), 'utf8'))
    return readFileSync(path.join(this.folder, file), 'utf8')
  }

  /** Starts a program that stays, until the test is over. Gives what it prints at first. */
  private runBehind(command: string, file: string): string {
    this.bash(`${this.exports}${command.slice(0, -2)} > ${file} 2>&1 & echo $! > pid`)
    const pid = Number(readFileSync(path.join(this.folder, 'pid'), 'utf8'))
    onTestFinished(() => {
      process.kill(pid)
    })
    this.bash(`for n in $(seq 200); do [ -s ${file} ] && break; sleep 0.1; done`)
    return readFileSync(path.join(this.folder, file), 'utf8')
  }

  private bash(script: string): void {
    const env = {
      HOME: this.home,
      PATH: `${this.folder}/bin:${path.dirname(process.execPath)}:${process.env['PATH']}`,
    }
    execFileSync('bash', ['-c', script], { cwd: this.folder, env, stdio: 'ignore' })
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
    .replaceAll(/lgt_[0-9a-f]{16}_[\w-]+/g, 'TOKEN')
    .replaceAll(/\b[0-9a-f]{64}\b/g, 'HASH')
    .replaceAll(/\b[0-9a-f]{16}\b/g, 'TOKEN-ID')
    .replaceAll(SHORT_ID, 'id')
    .replaceAll(/note: .*/g, 'note: ...')
    .replaceAll(/\/\S+\/(?=\w+\.db)/g, '/')
    .replaceAll(/\d+m \d+s|\d+(\.\d+)? (s|min|h)\b/g, 'TIME')
    .replaceAll(/\d+(\.\d+)?k?/g, '0')
    .replaceAll(/[ \t]+/g, ' ')
}
