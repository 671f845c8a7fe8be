// Runs `legate` many times in one process, one call after the other: to start Node and load the program takes longer than most commands do.
// A message is { program, args, env, cwd, input }, the answer { code, stdout, stderr }, as of a process that ended by itself.

import { Readable, Writable } from 'node:stream'

const SIGNALS = ['SIGINT', 'SIGTERM', 'SIGHUP', 'warning']
let count = 0

process.once('disconnect', () => process.kill(process.pid, 'SIGKILL'))
process.on('message', async (call) => process.send?.(await run(call)))

/** The program runs its command when it is imported, and calls `exit` at its end; what it imports is loaded already. */
async function run({ program, args, env, cwd, input }) {
  const [stdout, stderr] = [new Written(), new Written()]
  replaceEnv(env)
  process.chdir(cwd)
  process.argv = [process.execPath, program, ...args]
  const stdin = Readable.from(input === undefined ? [] : [Buffer.from(input)])
  for (const [name, value] of Object.entries({ stdin, stdout, stderr })) Object.defineProperty(process, name, { value })
  count += 1
  const code = await new Promise((resolve, reject) => {
    process.exit = (code) => resolve(code ?? 0)
    import(`${program}?call=${count}`).catch(reject)
  })
  for (const signal of SIGNALS) process.removeAllListeners(signal)
  return { code, stdout: stdout.text, stderr: stderr.text }
}

function replaceEnv(env) {
  for (const name of Object.keys(process.env)) if (!Object.hasOwn(env, name)) delete process.env[name]
  Object.assign(process.env, env)
}

class Written extends Writable {
  #pieces = []

  get text() {
    return Buffer.concat(this.#pieces).toString('utf8')
  }

  _write(piece, _encoding, done) {
    this.#pieces.push(Buffer.from(piece))
    done()
  }
}
