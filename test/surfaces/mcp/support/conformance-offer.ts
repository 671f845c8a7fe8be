import {
  type McpCall,
  type McpOptions,
  type McpPrompt,
  McpRefusal,
  type McpResource,
  type McpTool,
} from 'legate/mcp-server'

// Tools, prompts and resources that the conformance suite asks for beside agents: forms of its own, and documents.

const nothing = { type: 'object', properties: {} } as const
const PIXEL = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=='

function text(said: string) {
  return { content: [{ type: 'text', text: said }] }
}

function elicit(message: string, properties: object, required: readonly string[] = Object.keys(properties)) {
  return {
    method: 'elicitation/create',
    params: { mode: 'form', message, requestedSchema: { type: 'object', properties, required } },
  }
}

/** The content of an answer that a person accepted. */
function accepted({ answers }: McpCall, key: string): Record<string, unknown> | undefined {
  const { action, content } = Object(answers[key]) as { action?: string; content?: Record<string, unknown> }
  return action === 'accept' ? content : undefined
}

function missing(capability: string): never {
  throw new McpRefusal(-32_021, `This needs ${capability}.`, { requiredCapabilities: { [capability]: {} } })
}

const NAME = { name: { type: 'string' } }
const OK = { ok: { type: 'boolean' } }

const titled = ['value1', 'value2', 'value3'].map((value) => ({ const: value, title: `Option ${value}` }))

/** A tool that asks for a form, and says what came back. */
function asking(name: string, properties: object): McpTool {
  return {
    name,
    description: 'Asks for a form.',
    inputSchema: { type: 'object', properties: { message: { type: 'string' } } },
    call: ({ message = 'Please fill in the form.' }, { answers }) => {
      if ('form' in answers) return text(`User response: ${JSON.stringify(answers['form'])}`)
      return { resultType: 'input_required', inputRequests: { form: elicit(String(message), properties) } }
    },
  }
}

const tools: readonly McpTool[] = [
  {
    name: 'test_embedded_resource',
    description: 'Gives a document.',
    inputSchema: nothing,
    call: () => ({
      content: [
        {
          type: 'resource',
          resource: {
            uri: 'test://embedded-resource',
            mimeType: 'text/plain',
            text: 'This is an embedded resource content.',
          },
        },
      ],
    }),
  },
  {
    name: 'test_multiple_content_types',
    description: 'Gives several things.',
    inputSchema: nothing,
    call: () => ({
      content: [
        { type: 'text', text: 'Multiple content types test:' },
        { type: 'image', data: PIXEL, mimeType: 'image/png' },
        {
          type: 'resource',
          resource: {
            uri: 'test://mixed-content-resource',
            mimeType: 'application/json',
            text: '{"test":"data","value":123}',
          },
        },
      ],
    }),
  },
  asking('test_elicitation', { username: { type: 'string' }, email: { type: 'string' } }),
  asking('test_elicitation_sep1034_defaults', {
    name: { type: 'string', default: 'John Doe' },
    age: { type: 'integer', default: 30 },
    score: { type: 'number', default: 95.5 },
    status: { type: 'string', enum: ['active', 'inactive', 'pending'], default: 'active' },
    verified: { type: 'boolean', default: true },
  }),
  asking('test_elicitation_sep1330_enums', {
    untitledSingle: { type: 'string', enum: ['option1', 'option2', 'option3'] },
    titledSingle: { type: 'string', oneOf: titled },
    legacyEnum: { type: 'string', enum: ['opt1', 'opt2', 'opt3'], enumNames: ['One', 'Two', 'Three'] },
    untitledMulti: { type: 'array', items: { type: 'string', enum: ['option1', 'option2', 'option3'] } },
    titledMulti: { type: 'array', items: { anyOf: titled } },
  }),
  {
    name: 'test_missing_capability',
    description: 'Needs sampling.',
    inputSchema: nothing,
    call: (_, { client }) => ('sampling' in client ? text('It is there.') : missing('sampling')),
  },
  ...['test_logging_tool', 'test_tool_with_logging'].map((name) => ({
    name,
    description: 'Logs three lines.',
    inputSchema: nothing,
    call: async (_: unknown, { log }: McpCall) => {
      for (const line of ['Tool execution started', 'Tool processing data', 'Tool execution completed']) {
        await log('info', line)
      }
      return text('Three lines were logged.')
    },
  })),
  {
    name: 'json_schema_2020_12_tool',
    description: 'Has a schema with newer words.',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      $defs: {
        address: {
          $anchor: 'addressDef',
          type: 'object',
          properties: { street: { type: 'string' }, city: { type: 'string' } },
        },
      },
      properties: {
        name: { type: 'string' },
        address: { $ref: '#/$defs/address' },
        contactMethod: { type: 'string', enum: ['phone', 'email'] },
        phone: { type: 'string' },
        email: { type: 'string' },
      },
      allOf: [{ anyOf: [{ required: ['phone'] }, { required: ['email'] }] }],
      if: { properties: { contactMethod: { const: 'phone' } }, required: ['contactMethod'] },
      // biome-ignore lint/suspicious/noThenProperty: a word of JSON Schema.
      then: { required: ['phone'] },
      else: { required: ['email'] },
      additionalProperties: false,
    },
    call: () => text('ok'),
  },
  {
    name: 'test_streaming_elicitation',
    description: 'Asks on a stream.',
    inputSchema: nothing,
    call: async (_, call) => {
      await call.progress(1)
      return { resultType: 'input_required', inputRequests: { user_name: elicit('What is your name?', NAME) } }
    },
  },
  {
    name: 'test_input_required_result_elicitation',
    description: 'Asks for a name.',
    inputSchema: nothing,
    call: (_, call) => {
      const name = accepted(call, 'user_name')?.['name']
      if (typeof name === 'string') return text(`Hello, ${name}!`)
      return { resultType: 'input_required', inputRequests: { user_name: elicit('What is your name?', NAME) } }
    },
  },
  ...['request_state', 'tampered_state'].map((sort) => ({
    name: `test_input_required_result_${sort}`,
    description: 'Asks for a word, with a state.',
    inputSchema: nothing,
    call: async (_: unknown, call: McpCall) => {
      if (call.state !== undefined && accepted(call, 'confirm') !== undefined) return text('state-ok')
      const requestState = await call.sign('asked')
      return { resultType: 'input_required', inputRequests: { confirm: elicit('Please confirm', OK) }, requestState }
    },
  })),
  {
    name: 'test_input_required_result_multiple_inputs',
    description: 'Asks for several things.',
    inputSchema: nothing,
    call: async (_, call) => {
      if (call.state !== undefined) return text('All there.')
      const message = { role: 'user', content: { type: 'text', text: 'Generate a greeting' } }
      return {
        resultType: 'input_required',
        inputRequests: {
          user_name: elicit('What is your name?', NAME),
          greeting: { method: 'sampling/createMessage', params: { messages: [message], maxTokens: 50 } },
          client_roots: { method: 'roots/list', params: {} },
        },
        requestState: await call.sign('asked'),
      }
    },
  },
  {
    name: 'test_input_required_result_multi_round',
    description: 'Asks twice.',
    inputSchema: nothing,
    call: async (_, call) => {
      if (call.state === 2) return text('Done.')
      const isFirst = call.state === undefined
      const inputRequests = isFirst
        ? { step1: elicit('Step 1: What is your name?', NAME) }
        : { step2: elicit('Step 2: What is your favorite color?', { color: { type: 'string' } }) }
      return { resultType: 'input_required', inputRequests, requestState: await call.sign(isFirst ? 1 : 2) }
    },
  },
  {
    name: 'test_input_required_result_capabilities',
    description: 'Asks what the client can answer.',
    inputSchema: nothing,
    call: (_, { client }) => {
      const message = { role: 'user', content: { type: 'text', text: 'Hello' } }
      const inputRequests = {
        ...('elicitation' in client ? { user_name: elicit('What is your name?', NAME) } : {}),
        ...('sampling' in client
          ? { greeting: { method: 'sampling/createMessage', params: { messages: [message], maxTokens: 50 } } }
          : {}),
      }
      return { resultType: 'input_required', inputRequests }
    },
  },
]

const prompts: readonly McpPrompt[] = [
  {
    name: 'test_simple_prompt',
    description: 'A text.',
    arguments: [],
    get: () => ({ messages: [said({ type: 'text', text: 'This is a simple prompt for testing.' })] }),
  },
  {
    name: 'test_prompt_with_arguments',
    description: 'A text with gaps.',
    arguments: [
      { name: 'arg1', description: 'The first.', required: true, values: ['paris', 'park', 'rome'] },
      { name: 'arg2', description: 'The second.', required: true },
    ],
    get: ({ arg1, arg2 }) => ({
      messages: [said({ type: 'text', text: `Prompt with arguments: arg1='${arg1}', arg2='${arg2}'` })],
    }),
  },
  {
    name: 'test_prompt_with_embedded_resource',
    description: 'A document.',
    arguments: [{ name: 'resourceUri', description: 'Its address.', required: true }],
    get: ({ resourceUri }) => ({
      messages: [
        said({
          type: 'resource',
          resource: { uri: resourceUri, mimeType: 'text/plain', text: 'Embedded resource content for testing.' },
        }),
        said({ type: 'text', text: 'Please process the embedded resource above.' }),
      ],
    }),
  },
  {
    name: 'test_prompt_with_image',
    description: 'An image.',
    arguments: [],
    get: () => ({
      messages: [
        said({ type: 'image', data: PIXEL, mimeType: 'image/png' }),
        said({ type: 'text', text: 'Please analyze the image above.' }),
      ],
    }),
  },
  {
    name: 'test_input_required_result_prompt',
    description: 'Asks first.',
    arguments: [],
    get: (_, call) => {
      const context = accepted(call, 'user_context')?.['context']
      if (typeof context === 'string') return { messages: [said({ type: 'text', text: `Use ${context}.` })] }
      const asked = elicit('What context should the prompt use?', { context: { type: 'string' } })
      return { resultType: 'input_required', inputRequests: { user_context: asked } }
    },
  },
]

function said(content: object) {
  return { role: 'user', content }
}

const resources: readonly McpResource[] = [
  document('test://static-text', 'text/plain', { text: 'This is the content of the static text resource.' }),
  document('test://static-binary', 'image/png', { blob: PIXEL }),
  document('test://watched-resource', 'text/plain', { text: 'Watched.' }),
  {
    uri: 'test://template/{id}/data',
    name: 'data',
    description: 'Data by id.',
    mimeType: 'application/json',
    read: async (uri, { id }) => [
      {
        uri,
        mimeType: 'application/json',
        text: JSON.stringify({ id, templateTest: true, data: `Data for ID: ${id}` }),
      },
    ],
  },
]

function document(uri: string, mimeType: string, body: object): McpResource {
  return {
    uri,
    name: uri.slice('test://'.length),
    description: 'A document.',
    mimeType,
    read: async () => [{ uri, mimeType, ...body }],
  }
}

/** The options of a server that the conformance suite can judge. */
export const conformanceOffer: McpOptions = {
  tools,
  prompts,
  resources,
  agents: {
    slow_compute: { waitMs: 0 },
    failing_job: { needsTasks: true },
    protocol_error_job: { waitMs: 0 },
    confirm_delete: { waitMs: 0 },
    multi_input: { waitMs: 0 },
    test_tool_with_task: { waitMs: 400 },
  },
}
