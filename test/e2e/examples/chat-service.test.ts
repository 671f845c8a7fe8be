import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { createInterface } from 'node:readline'
import { beforeEach, expect, onTestFinished, test } from 'vitest'
import { openChat } from '../../../examples/chat-service/page.ts'
import { dist, skipUnlessBuilt, toJavaScript } from '../../support/program.ts'
import { tempFolder } from '../../support/temp-folder.ts'

const example = path.resolve(import.meta.dirname, '../../../examples/chat-service/server.ts')
const COUNTED = Array.from({ length: 50 }, (_, at) => `${at + 1} `).join('')

interface Served {
  readonly process: ChildProcess
  readonly url: string
}

/** Starts the service in a process of its own, and waits until it listens. */
async function start(folder: string, port: number): Promise<Served> {
  const file = path.join(folder, 'server.mjs')
  writeFileSync(file, toJavaScript(readFileSync(example, 'utf8')))
  const env = { ...process.env, CHATS: path.join(folder, 'chats.db'), PORT: String(port) }
  const child = spawn(process.execPath, [file], { env, stdio: ['ignore', 'pipe', 'inherit'] })
  onTestFinished(() => {
    child.kill('SIGKILL')
  })
  const [line] = (await once(createInterface({ input: child.stdout }), 'line')) as [string]
  return { process: child, url: line }
}

async function until(holds: () => boolean): Promise<void> {
  while (!holds()) await new Promise((resolve) => setTimeout(resolve, 10))
}

beforeEach(skipUnlessBuilt)

test('the chat service is short', () => {
  expect(readFileSync(example, 'utf8').split('\n').length).toBeLessThanOrEqual(50)
})

test('an answer of the chat service survives kill -9: the page resumes, and has it whole and once', async () => {
  const folder = tempFolder(onTestFinished, dist)
  const first = await start(folder, 0)
  const port = Number(new URL(first.url).port)
  const chat = await openChat(first.url, { id: 'a chat', user: 'ann' })
  const asked = chat.sendMessage({ text: 'Count.' })
  const words = () => chat.lastMessage?.parts.map((part) => (part.type === 'text' ? part.text : '')).join('') ?? ''
  await until(() => words().includes('10 '))
  first.process.kill('SIGKILL')
  await asked
  expect(chat.status).toBe('error')
  expect(words()).not.toContain('50')

  const second = await start(folder, port)
  await chat.resumeStream()

  expect(chat.error).toBeUndefined()
  expect(chat.messages.map(({ role }) => role)).toEqual(['user', 'assistant'])
  expect(words()).toBe(COUNTED)
  const loaded = await openChat(second.url, { id: 'a chat', user: 'ann' })
  expect(JSON.parse(JSON.stringify(chat.messages))).toEqual(loaded.messages)
  expect((await openChat(second.url, { id: 'a chat', user: 'bob' })).messages).toEqual([])
})
