import path from 'node:path'
import { agent, type Json, type Tools } from 'legate'
import type { ModelRequest } from 'legate/models'
import { type OpenOptions, openSubagents } from 'legate/recipe'
import { type Script, type ScriptedAnswerFields, type ScriptedModel, scriptedModel } from 'legate/testing'
import { folderWith } from '../support/folder.ts'

export interface Call {
  readonly name: string
  readonly input: Json
}

/** The last message that a tool gave, or undefined before any did. */
export function lastResult({ messages }: Pick<ModelRequest, 'messages'>): string | undefined {
  const last = messages.findLast(({ role }) => role === 'tool')
  return last === undefined ? undefined : String(last.content)
}

export function resultsIn({ messages }: Pick<ModelRequest, 'messages'>): string[] {
  return messages.flatMap((message) => (message.role === 'tool' ? [String(message.content)] : []))
}

export function systemOf({ messages }: Pick<ModelRequest, 'messages'>): string {
  return messages.flatMap((message) => (message.role === 'system' ? [message.content] : [])).join('\n')
}

export function userOf({ messages }: Pick<ModelRequest, 'messages'>): unknown {
  return messages.find(({ role }) => role === 'user')?.content
}

/** The host makes these calls in one message and then says what came back; children do as `child` says. */
export function delegating(calls: readonly Call[], child: Script = () => 'done'): ScriptedModel {
  return scriptedModel((request, at) => {
    if (request.path.length > 1) return child(request, at)
    const results = resultsIn(request)
    return results.length === 0 ? { calls } : results.join('\n---\n')
  })
}

export function subagent(input: Json): Call {
  return { name: 'subagent', input }
}

export function calling(name: string, input: Json = {}): ScriptedAnswerFields {
  return { calls: [{ name, input }] }
}

export interface HostParts {
  readonly model: ScriptedModel
  readonly options?: OpenOptions
  readonly tools?: Tools
}

export function hostOf({ model, options = {}, tools = {} }: HostParts) {
  return agent({ name: 'host', instructions: 'You delegate.', model, tools: { ...tools, ...openSubagents(options) } })
}

/** What children were asked, in order. */
export function childRequests(model: ScriptedModel): ModelRequest[] {
  return model.requests.filter((request) => request.path.length > 1)
}

/** What the host's model was shown of a tool. */
export function shownTool(model: ScriptedModel, name: string): ModelRequest['tools'][number] | undefined {
  return model.requests[0]?.tools.find((tool) => tool.name === name)
}

/** A recipe file in a folder of its own. */
export function recipe(fields: string, others: Readonly<Record<string, string>> = {}): string {
  return path.join(folderWith({ 'recipe.yaml': `title: T\ndescription: D\n${fields}`, ...others }), 'recipe.yaml')
}

export const TWO_PARAMETERS = `title: T
description: Does a thing
instructions: Work.
prompt: "Do {{ first }} and {{ second }}"
parameters:
  - { key: first, input_type: string, requirement: required, description: one }
  - { key: second, input_type: string, requirement: required, description: two }
`
