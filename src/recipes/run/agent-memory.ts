import type { ExtensionCore } from '../../core/agent/definition/extension.ts'
import { sha256 } from '../../core/base/hash.ts'
import type { Message, ModelRequest } from '../../core/model/model.ts'
import { type MemoryToolsOptions, rememberedBy } from '../../core/tools/memory-tools.ts'
import type { InlineAgent } from '../inline/inline-agent.ts'

/** Where an agent whose file asks for a memory keeps it: apart from other agents, and where its file says so from other projects. */
export function memoryOf({ name, remembers, memory, definitions }: InlineAgent): MemoryToolsOptions | undefined {
  if (remembers === undefined) return memory
  const project = remembers === 'user' ? '' : ` ${sha256(definitions).slice(0, 16)}`
  return { ...memory, agent: `${name}${project}` }
}

/** Tells an agent what it has remembered, before each call of its model. */
export function tellingMemory(inline: InlineAgent): ExtensionCore {
  const remembered = rememberedBy(memoryOf(inline) ?? {})
  return {
    name: 'legate/agent-memory',
    hooks: {
      onRequest: async ({ messages }: ModelRequest, { owner }) => {
        const { text, isCut } = await remembered(owner)
        return { messages: withMemory(messages, memoryWords(text, isCut)) }
      },
    },
  }
}

function withMemory(messages: readonly Message[], words: string): Message[] {
  const [first, ...others] = messages
  if (first?.role !== 'system') return [{ role: 'system', content: words }, ...messages]
  return [{ ...first, content: `${first.content}\n\n${words}` }, ...others]
}

function memoryWords(text: string, isCut: boolean): string {
  const told = text === '' ? 'You have remembered nothing yet.' : `What you have remembered in earlier runs:\n\n${text}`
  return `# Your memory

Keep with memory_remember what will help you in later runs, and take back with memory_forget what is no longer true.

${told}${isCut ? '\n\nThere is more: memory_recall finds it.' : ''}`
}
