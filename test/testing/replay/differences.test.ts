import { appendFileSync, chmodSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { agent, createRuntime, type Tools, tool } from 'legate'
import { memoryStore } from 'legate/store/memory'
import { record, replay, type Script, scriptedModel } from 'legate/testing'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { both, linesOf, recorded, recordingFile, replayed, seen } from './support.ts'

const look = tool({ description: 'Looks.', input: z.object({ q: z.string() }), execute: ({ q }) => `saw ${q}` })
const looks: Script = ({ messages }) => {
  const last = messages.at(-1)
  return last?.role === 'tool'
    ? `It ${String(last.content)}.`
    : { calls: [{ id: 'l', name: 'look', input: { q: String(last?.content) } }] }
}
const who = (instructions = 'You look.', tools: Tools = { look }) =>
  agent({ name: 'who', instructions, model: scriptedModel(looks), tools })

async function recording(inputs: readonly string[] = ['stars'], instructions?: string): Promise<string> {
  const file = recordingFile()
  const runtime = recorded(file)
  for (const input of inputs) await runtime.run(who(instructions), input).result
  await runtime.close()
  return file
}

describe('a run that is not the one that was recorded', () => {
  test('a request that differs is an error that shows the difference', async () => {
    const file = await recording(['stars'], `You look ${'far '.repeat(60)}with care.`)
    const runtime = replayed(file)

    const outcome = await runtime.run(who(`You look ${'far '.repeat(60)}in haste.`), 'stars').result

    expect(outcome).toMatchObject({ status: 'failed', error: { code: 'model' } })
    expect(outcome.error?.message).toContain('the request is not the one that was recorded')
    expect(() => runtime.assertComplete()).toThrow(
      /at who\.1: the request is not the one that was recorded \(line 3\):\n {2}messages\[0\]\.content\n {4}- recorded: ….*with care\..*\n {4}\+ now: {6}….*in haste\./,
    )
  })

  test('tools, settings and the number of messages are part of it; five places are shown', async () => {
    const file = await recording()
    const runtime = replayed(file)
    const other = agent({
      name: 'who',
      instructions: 'You look.',
      model: scriptedModel(looks),
      settings: { temperature: 1, topP: 1, seed: 1 },
      tools: { look: tool({ description: 'Peers.', input: z.object({ query: z.string() }), execute: () => '' }) },
    })

    await runtime.run(other, 'stars').result

    expect(() => runtime.assertComplete()).toThrow(
      /tools\[0\]\.description\n.*"Looks\."\n.*"Peers\."\n(?:.*\n)* {2}and 2 more/,
    )
  })

  test('the first difference is told, not what comes of it above', async () => {
    const child = (text: string) =>
      agent({
        name: 'child',
        instructions: text,
        input: z.object({ n: z.number() }),
        model: scriptedModel(() => 'done'),
      })
    const host = (text: string) =>
      agent({
        name: 'host',
        instructions: '',
        subagents: { child: child(text) },
        model: scriptedModel(({ messages }) =>
          messages.at(-1)?.role === 'tool' ? 'ok' : { calls: [{ id: 'c', name: 'child', input: { n: 1 } }] },
        ),
      })
    const { file } = await both((runtime) => runtime.run(host('one'), 'go'))
    const runtime = replayed(file)

    const outcome = await runtime.run(host('two'), 'go').result

    expect(outcome.error?.message).toMatch(/host\.2\/child\.\d+: the request is not the one/)
  })

  test('a call with other arguments, or of another tool, is not run either', async () => {
    const file = await recording()
    writeFileSync(
      file,
      readFileSync(file, 'utf8').replace('"tool":"look","input":{"q":"stars"}', '"tool":"look","input":{"q":"moons"}'),
    )
    const ran: string[] = []
    const spy = tool({
      description: 'Looks.',
      input: z.object({ q: z.string() }),
      execute: ({ q }) => ran.push(q),
    })
    const runtime = replayed(file)

    await runtime.run(who('You look.', { look: spy }), 'stars').result

    expect(ran).toEqual([])
    expect(() => runtime.assertComplete()).toThrow(/the call is not the one.*\n {2}input\.q\n.*"moons"\n.*"stars"/)
  })

  test('a run that asks for more says what, and one that asks for less what is left', async () => {
    const file = await recording()
    const more = replayed(file)
    await more.run(who(), 'stars').result
    const again = await more.run(who(), 'stars').result
    expect(again.error?.message).toContain('nothing was recorded for it')

    const warned: string[] = []
    const logger = { debug() {}, info() {}, warn() {}, error: (message: string) => warned.push(message) }
    const less = replay(file, { logger })
    expect(() => less.assertComplete()).toThrow('3 of 3 recorded answers')
    await less.close()
    const quiet = replay(file, { logger })
    await quiet.close()
    expect(warned).toHaveLength(1)
    expect(warned[0]).toMatch(/3 of 3 recorded answers of .* were not asked for:\n {2}who\.1 \(line 3\)\n/)
  })
})

describe('one file', () => {
  test('holds several runs, which are found by what they are asked, in any order', async () => {
    const file = await recording(['stars', 'moons', 'stars'])
    const runtime = replayed(file)

    const texts = await Promise.all(
      ['moons', 'stars', 'stars'].map(async (q) => (await runtime.run(who(), q).result).text),
    )

    expect(texts).toEqual(['It saw moons.', 'It saw stars.', 'It saw stars.'])
    runtime.assertComplete()
    expect(
      linesOf(file)
        .filter((line) => 'run' in line)
        .map(({ run }) => run),
    ).toEqual(['who', 'who~2', 'who~3'])
  })

  test('holds a conversation of several turns, and says what was said once', async () => {
    const talk = async (runtime: ReturnType<typeof recorded>) => {
      const first = runtime.run(who(), 'one')
      await first.result
      for (const input of ['two', 'three'])
        await runtime.run(who(), input, { conversationId: first.conversationId }).result
      return runtime.run(who(), 'four', { conversationId: first.conversationId })
    }
    const { file, first, second, runtime } = await both(talk)

    expect(second.graph).toEqual(first.graph)
    runtime.assertComplete()
    expect(readFileSync(file, 'utf8').match(/"content":"one"/g)).toHaveLength(1)
    expect(linesOf(file).map(({ at }) => at)).toContain('who+3.3')
  })

  test('is begun anew by another recording, and gone on with where its runs are known', async () => {
    const file = await recording(['stars'])
    const store = memoryStore()
    const first = record(createRuntime({ store }), file)
    const run = first.run(who(), 'moons')
    await run.result
    expect(linesOf(file)).toHaveLength(5)
    appendFileSync(file, '{"at":"who.9","tor')

    const second = record(createRuntime({ store }), file)
    await second.run(who(), 'suns', { conversationId: run.conversationId }).result

    expect(linesOf(file).map(({ at, run: name }) => at ?? name)).toEqual([
      undefined,
      'who',
      'who.1',
      'who.2',
      'who.3',
      'who+1.1',
      'who+1.2',
      'who+1.3',
    ])
    await Promise.allSettled([second.close(), first.close()])
  })

  test('a file that is not a recording is neither read nor overwritten; a damaged recording is reported with its line', async () => {
    const file = recordingFile()
    writeFileSync(file, '{"name":"my-package"}\n')
    expect(() => recorded(file)).toThrow('is not a recording of ours')
    expect(() => replay(file)).toThrow('is not a recording of ours')
    expect(readFileSync(file, 'utf8')).toBe('{"name":"my-package"}\n')
    expect(() => replay(`${file}.none`)).toThrow(/There is no recording .*record\(runtime, file\)/)
    writeFileSync(file, '{"legate":"recording","version":9}\n')
    expect(() => replay(file)).toThrow('another version')
    writeFileSync(file, '{"legate":"recording","version":1}\n{"at":\n{"at":"a.1"}\n')
    expect(() => replay(file)).toThrow(/line 2: /)
    writeFileSync(file, '')
    expect(() => replay(file)).toThrow('is not a recording of ours')
  })

  test('whose end is torn is played as far as it goes', async () => {
    const file = await recording()
    const text = readFileSync(file, 'utf8')
    writeFileSync(file, text.slice(0, -20))
    const runtime = replayed(file)

    const { outcome } = await seen(runtime, (at) => at.run(who(), 'stars'))

    expect(outcome.error?.message).toContain('at who.3: nothing was recorded for it')
  })

  test('is for one runtime', async () => {
    const file = await recording()
    const runtime = recorded(recordingFile())
    expect(() => record(runtime, file)).toThrow('recorded or played back already')
    expect(() => record({} as never, file)).toThrow('make the runtime with createRuntime()')
  })
})

describe('what must not be in a file', () => {
  const SECRET = 'hunter2hunter2hunter2'

  test('secrets of the environment, of keys and of shapes are taken out everywhere, also in pieces', async () => {
    process.env['MY_TEST_API_KEY'] = SECRET
    const vault = tool({
      description: `Needs ${SECRET}.`,
      input: z.object({ password: z.string() }),
      execute: (_input, { progress }) => {
        progress(`using ${SECRET}`)
        return { token: 'short1', text: `a key ${SECRET} and sk-abcdefgh12345678`, nested: [{ apiKey: 'k-9' }] }
      },
    })
    const leaky = agent({
      name: 'leaky',
      instructions: `The key is ${SECRET}.`,
      tools: { vault },
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === 'tool'
          ? { chunks: ['It is ', SECRET.slice(0, 5), SECRET.slice(5, 9), `${SECRET.slice(9)} in`, ' pieces'] }
          : { calls: [{ id: 'v', name: 'vault', input: { password: 'letmein' } }] },
      ),
    })
    const { file, first, second, runtime } = await both((at) => at.run(leaky, `Take ${SECRET}`))
    delete process.env['MY_TEST_API_KEY']

    const text = readFileSync(file, 'utf8')
    for (const secret of [SECRET, SECRET.slice(0, 12), 'hunte', 'letmein', 'short1', 'abcdefgh', 'k-9']) {
      expect(text).not.toContain(secret)
    }
    expect(first.outcome.text).toBe(`It is ${SECRET} in pieces`)
    expect(second.outcome.text).toBe('It is *** in pieces')
    expect(second.events.filter(({ type }) => type === 'text-delta')).toHaveLength(4)
    runtime.assertComplete()
  })

  test('keys of objects are cleaned like texts, and match any others in a replay', async () => {
    const file = recordingFile()
    const ghp = (letter: string) => `ghp_${letter.repeat(36)}`
    const keeper = (letter: string) => {
      const keep = tool({
        description: 'Keeps',
        input: { type: 'object' },
        execute: () => ({ [ghp(letter)]: 1, [`${ghp(letter)}x`]: 2, plain: { [ghp(letter)]: 'kept' } }),
      })
      const input = { [ghp(letter)]: 'a', [`${ghp(letter)}x`]: 'b' }
      const model = scriptedModel([{ calls: [{ id: 'k', name: 'keep', input }] }, 'Done.'])
      return agent({ name: 'keeper', instructions: 'x', tools: { keep }, model })
    }
    const runtime = recorded(file)
    await runtime.run(keeper('a'), 'go').result
    await runtime.close()
    const played = replayed(file)
    const { status } = await played.run(keeper('b'), 'go').result

    expect(readFileSync(file, 'utf8')).not.toContain('ghp_')
    expect(status).toBe('completed')
    played.assertComplete()
  })

  test.each([
    ['GitHub', `ghp_${'aB3'.repeat(12)}`],
    ['GitLab', `glpat-${'aB3-'.repeat(6)}`],
    ['AWS', 'AKIAIOSFODNN7EXAMPLE'],
    ['Slack', `xoxb-123456789012-${'aB3'.repeat(8)}`],
    ['a JSON web token', `eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.${'aB3'.repeat(12)}`],
    ['Hugging Face', `hf_${'aB3'.repeat(12)}`],
    ['npm', `npm_${'aB3'.repeat(12)}`],
    ['a private key', `-----BEGIN PRIVATE KEY-----\n${'aB3+'.repeat(16)}\n-----END PRIVATE KEY-----`],
  ])('a key of %s is not in a file', async (_, key) => {
    const file = recordingFile()
    const runtime = recorded(file)
    const model = scriptedModel([`I saw ${key}.`])
    await runtime.run(agent({ name: 'a', instructions: `Use ${key}.`, model }), `Take ${key}`).result
    await runtime.close()

    expect(readFileSync(file, 'utf8')).not.toMatch(/aB3|AKIA|eyJ/)
  })

  test('a file is for its owner only, also one that was there and open to all', async () => {
    const [fresh, known] = [recordingFile(), recordingFile()]
    const who = () => agent({ name: 'who', instructions: 'x', model: scriptedModel(['yes']) })
    for (const file of [fresh, known, known]) {
      const runtime = recorded(file)
      await runtime.run(who(), 'go').result
      await runtime.close()
      expect(statSync(file).mode & 0o777).toBe(0o600)
      chmodSync(file, 0o644)
    }
  })

  test('a replay needs neither the secrets nor the function that took them out', async () => {
    const file = recordingFile()
    const person = (name: string) =>
      agent({ name: 'who', instructions: `For ${name}.`, model: scriptedModel(() => `Hello ${name}`) })
    const runtime = recorded(file, {}, { redact: (text) => text.replaceAll('Ann Lee', '***') })
    await runtime.run(person('Ann Lee'), 'I am Ann Lee, hi').result
    await runtime.close()

    expect(readFileSync(file, 'utf8')).not.toContain('Ann')
    const played = replayed(file)
    expect((await played.run(person('Bob Ray'), 'I am Bob Ray, hi').result).text).toBe('Hello ***')
    played.assertComplete()
  })
})
