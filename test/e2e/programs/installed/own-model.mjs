// A model object of the user's own, of a package that the user has installed.
import { createOpenAI } from '@ai-sdk/openai'
import { agent } from 'legate'

const openai = createOpenAI({ apiKey: 'any', baseURL: process.env['OPENAI_BASE_URL'] })
const clerk = agent({ name: 'clerk', instructions: 'You greet.', model: openai('gpt-5') })
console.log((await clerk.generate('Hello')).text)
