import type { Conversation } from '../../index.ts'

/** Whose code a process must have to go on with a conversation: an agent's name, or empty where its row has all of it. */
export function codeOf(conversation: Pick<Conversation, 'agent'> | undefined): string {
  return conversation === undefined ? '?' : (conversation.agent.code ?? conversation.agent.name)
}

/** The folder that an agent which is kept in its row works in. */
export function folderOf(conversation: Pick<Conversation, 'agent'> | undefined): string | undefined {
  return keptText(conversation, 'cwd')
}

/** The name of the model that an agent which is kept in its row speaks with. */
export function modelNameOf(conversation: Pick<Conversation, 'agent'> | undefined): string | undefined {
  return keptText(conversation, 'model')
}

function keptText(conversation: Pick<Conversation, 'agent'> | undefined, key: string): string | undefined {
  const inline = conversation?.agent.inline
  const value = typeof inline === 'object' && inline !== null ? Reflect.get(inline, key) : undefined
  return typeof value === 'string' ? value : undefined
}
