# A worker in Ruby, for `pintle serve`: see docs/workers.md.
require "json"

LOCK = Mutex.new
$numbers = 0

# Ends a run of a call. The next run has the answer.
class Question < StandardError
  attr_accessor :question
end

class Call
  def initialize(line)
    @id, @answers, @done = line.values_at("call", "answers", "once")
  end

  def write(**members)
    LOCK.synchronize { $stdout.puts({ call: @id, **members }.to_json); $stdout.flush }
  end

  def once(key)
    return @done[key] if @done.key?(key)
    yield.tap { |value| write(once: { key: key, value: value }) }
  end

  def ask(key, message, schema)
    question = Question.new.tap { |asked| asked.question = { key: key, message: message, schema: schema } }
    @answers.key?(key) ? @answers[key]["content"] : raise(question)
  end
end

TOOLS = {
  "echo" => ->(_call, arguments) { arguments["text"] },
  "count" => lambda do |call, arguments|
    to = arguments["to"]
    (1..to).each { |number| call.write(progress: number, total: to, message: "#{number} of #{to}") }
    { counted: to }
  end,
  "order" => lambda do |call, arguments|
    number = call.once("number") { LOCK.synchronize { $numbers += 1 } }
    schema = { type: "object", properties: { pieces: { type: "integer" } }, required: ["pieces"] }
    answer = call.ask("pieces", "How many pieces of #{arguments["what"]}?", schema)
    answer ? "Order #{number}: #{answer["pieces"]} #{arguments["what"]}" : "Nothing was ordered."
  end
}

def run(call, line)
  call.write(result: TOOLS.fetch(line["tool"]).call(call, line["arguments"]))
rescue Question => question
  call.write(question: question.question)
rescue StandardError => error
  call.write(error: "#{error.class}: #{error.message}")
end

while (text = $stdin.gets)
  line = JSON.parse(text)
  Thread.new(line) { |own| run(Call.new(own), own) } if line.key?("tool")
end
