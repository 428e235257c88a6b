// Turns a .cu file into C++ for the emulator: rewrite IN OUT NAME, where NAME is what messages call the file. Lines
// keep their numbers. Launches become calls of emulator::configure(), shared variables references into the block's
// memory; emulator/launch.h shows both. A form that it does not know is an error that names it, never a guess.
#include <algorithm>
#include <cctype>
#include <fstream>
#include <iostream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

using Position = std::string::size_type;
constexpr Position kNone = std::string::npos;

struct Edit {
  Position begin, end;
  std::string text;
};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }
bool is_space(char c) { return std::isspace(static_cast<unsigned char>(c)); }

// The same text with comments and literals blanked, so that what is found in it is code. Newlines stay.
std::string code_of(const std::string& text) {
  std::string code = text;
  const auto blank = [&](Position from, Position to) {
    for (Position i = from; i < std::min(to, code.size()); ++i)
      if (code[i] != '\n') code[i] = ' ';
  };
  for (Position i = 0; i < text.size();) {
    Position end = i + 1;
    if (text.compare(i, 2, "//") == 0) {
      end = std::min(text.find('\n', i), text.size());
      blank(i, end);
    } else if (text.compare(i, 2, "/*") == 0) {
      end = text.find("*/", i + 2);
      end = end == kNone ? text.size() : end + 2;
      blank(i, end);
    } else if (text.compare(i, 2, "R\"") == 0 && (i == 0 || !is_word(text[i - 1]))) {
      const Position open = text.find('(', i);
      end = open == kNone ? kNone : text.find(")" + text.substr(i + 2, open - i - 2) + "\"", open);
      end = end == kNone ? text.size() : text.find('"', end) + 1;
      blank(i + 1, end);
    } else if (text[i] == '"' || (text[i] == '\'' && (i == 0 || !is_word(text[i - 1])))) {  // 1'000 is no literal
      while (end < text.size() && text[end] != text[i] && text[end] != '\n') end += text[end] == '\\' ? 2 : 1;
      blank(i + 1, end++);
    }
    i = end;
  }
  return code;
}

class Rewriter {
 public:
  Rewriter(std::string text, std::string name)
      : text_(std::move(text)), code_(code_of(text_)), name_(std::move(name)) {}

  std::string result() {
    launches();
    shared_variables();
    std::sort(edits_.begin(), edits_.end(), [](const Edit& a, const Edit& b) { return a.begin > b.begin; });
    std::string out = text_;
    for (const Edit& e : edits_) {
      // What spanned lines leaves as many behind.
      const auto lines = std::count(text_.begin() + static_cast<std::ptrdiff_t>(e.begin),
                                    text_.begin() + static_cast<std::ptrdiff_t>(e.end), '\n') -
                         std::count(e.text.begin(), e.text.end(), '\n');
      out.replace(e.begin, e.end - e.begin, e.text + std::string(static_cast<std::size_t>(lines), '\n'));
    }
    return "#line 1 \"" + name_ + "\"\n" + out;
  }

 private:
  [[noreturn]] void refuse(Position at, const std::string& why) const {
    const auto line = 1 + std::count(code_.begin(), code_.begin() + static_cast<std::ptrdiff_t>(at), '\n');
    throw std::runtime_error(name_ + ":" + std::to_string(line) + ": error: " + why);
  }
  Position skip_space(Position i) const {
    while (i < code_.size() && is_space(code_[i])) ++i;
    return i;
  }
  std::string trimmed(Position begin, Position end) const {
    while (begin < end && is_space(text_[begin])) ++begin;
    while (end > begin && is_space(text_[end - 1])) --end;
    return text_.substr(begin, end - begin);
  }
  // Behind the bracket that closes the one at `open`.
  Position behind_bracket(Position open) const {
    int depth = 0;
    for (Position i = open; i < code_.size(); ++i) {
      if (std::string("([{").find(code_[i]) != kNone) ++depth;
      if (std::string(")]}").find(code_[i]) != kNone && --depth == 0) return i + 1;
    }
    refuse(open, "this bracket is not closed");
  }

  // kernel<T, 4> <<< grid, block, bytes, stream >>> becomes ::nanolm::emulator::configure("...", kernel<T, 4>, ...).
  void launches() {
    for (Position at = code_.find("<<<"); at != kNone; at = code_.find("<<<", at + 3)) {
      Position begin = at;
      while (begin > 0 && is_space(code_[begin - 1])) --begin;
      const Position kernel_end = begin;
      if (begin > 0 && code_[begin - 1] == '>') {  // template arguments
        int depth = 0;
        do {
          if (begin == 0) refuse(at, "the template arguments in front of <<< have no beginning");
          --begin;
          if (code_[begin] == '>' && code_[begin - 1] != '-') ++depth;
          if (code_[begin] == '<') --depth;
          if (code_[begin] == ')' || code_[begin] == ']') begin = bracket_before(begin);
        } while (depth > 0);
        while (begin > 0 && is_space(code_[begin - 1])) --begin;
      }
      while (begin > 0 && (is_word(code_[begin - 1]) || code_[begin - 1] == ':')) --begin;
      if (begin == kernel_end || !is_word(code_[skip_space(begin)]))
        refuse(at, "a launch <<<>>> must have the name of a kernel in front of it");
      Position end = at + 3;
      for (int depth = 0; depth > 0 || code_.compare(end, 3, ">>>") != 0; ++end) {
        if (end >= code_.size()) refuse(at, "<<< without >>>");
        if (code_[end] == '(' || code_[end] == '[' || code_[end] == '{') ++depth;
        if (code_[end] == ')' || code_[end] == ']' || code_[end] == '}') --depth;
        if (code_[end] == ';') refuse(at, "<<< without >>>");
      }
      if (skip_space(end + 3) >= code_.size() || code_[skip_space(end + 3)] != '(')
        refuse(at, "the kernel's arguments in parentheses must follow >>>");
      const std::string kernel = trimmed(begin, kernel_end);
      std::string quoted;
      for (const char c : kernel)
        quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c == '\n' ? ' ' : c);
      // Two edits, so that what stands within <<<>>> keeps its lines.
      edits_.push_back({begin, at + 3, "::nanolm::emulator::configure(\"" + quoted + "\", " + kernel + ", "});
      edits_.push_back({end, end + 3, ")"});
    }
  }
  Position bracket_before(Position close) const {
    int depth = 0;
    for (Position i = close + 1; i-- > 0;) {
      if (std::string(")]}").find(code_[i]) != kNone) ++depth;
      if (std::string("([{").find(code_[i]) != kNone && --depth == 0) return i;
    }
    refuse(close, "this bracket is not opened");
  }

  // [extern | static] __shared__ [__align__(16)] TYPE NAME[N]...;
  void shared_variables() {
    const std::string keyword = "__shared__";
    for (Position at = code_.find(keyword); at != kNone; at = code_.find(keyword, at + 1)) {
      if ((at > 0 && is_word(code_[at - 1])) || is_word(code_[at + keyword.size()])) continue;
      const Position statement_end = code_.find(';', at);
      if (statement_end == kNone) refuse(at, "a __shared__ declaration must end with ;");
      Position begin = at;
      while (begin > 0 && std::string(";{}").find(code_[begin - 1]) == kNone) --begin;
      begin = skip_space(begin);
      while (code_[begin] == '#' || code_.compare(begin, 2, "//") == 0) begin = skip_space(code_.find('\n', begin));
      bool is_extern = false;
      std::string alignment, type;
      const auto words = [&](Position from, Position to, bool before) {
        for (Position i = skip_space(from); i < to; i = skip_space(i)) {
          Position end = i;
          while (end < to && is_word(code_[end])) ++end;
          const std::string word = code_.substr(i, end - i);
          if (word == "extern")
            is_extern = true, i = end;
          else if (word == "static")
            i = end;
          else if (word == "__align__" || word == "alignas" || word == "__attribute__") {
            const Position open = skip_space(end), close = behind_bracket(open);
            alignment = word == "__attribute__" ? alignment : text_.substr(open + 1, close - open - 2);
            if (word == "__attribute__")
              refuse(i, "__attribute__ at a __shared__ variable is not supported; use __align__(n)");
            i = close;
          } else if (before && (word == "volatile" || word == "const")) {
            type += word + " ", i = end;
          } else if (before) {
            refuse(at, "__shared__ must stand in front of its variable's type: " + trimmed(begin, statement_end));
          } else {
            return i;
          }
        }
        return to;
      };
      words(begin, at, true);
      const Position declarator = words(at + keyword.size(), statement_end, false);
      // The name is the last word in front of [ or the end; what stands before it is the type.
      Position bounds = declarator;
      for (int angle = 0; bounds < statement_end; ++bounds) {
        const char c = code_[bounds];
        if (c == '<') ++angle;
        if (c == '>') --angle;
        if (c == '[' && angle == 0) break;
        if ((c == ',' || c == '=' || c == '(' || c == '{') && angle == 0)
          refuse(at, std::string("a __shared__ declaration with '") + c +
                         "' is not supported: one variable a line, without a value: " + trimmed(begin, statement_end));
      }
      Position name_end = bounds;
      while (name_end > declarator && is_space(code_[name_end - 1])) --name_end;
      Position name = name_end;
      while (name > declarator && is_word(code_[name - 1])) --name;
      type += trimmed(declarator, name);
      const std::string name_text = code_.substr(name, name_end - name);
      if (name_text.empty() || type.empty())
        refuse(at, "this __shared__ declaration is not understood: " + trimmed(begin, statement_end));
      Position after = bounds;
      while (after < statement_end && code_[after] == '[') after = skip_space(behind_bracket(after));
      if (after != statement_end)
        refuse(at, "this __shared__ declaration is not understood (one variable a line, without a value): " +
                       trimmed(begin, statement_end));
      if (depth_at(at) == 0) refuse(at, "__shared__ variables are supported inside functions only: " + name_text);
      const std::string dims = trimmed(bounds, statement_end);
      if (is_extern != (skip_space(bounds + 1) < statement_end && code_[skip_space(bounds + 1)] == ']'))
        refuse(at, is_extern ? "an extern __shared__ array is written with empty brackets: " + name_text
                             : "only an extern __shared__ array may have empty brackets: " + name_text);
      const std::string at_least = alignment.empty() ? "1" : alignment;
      const std::string call = is_extern ? "dynamic_shared<" + type + ", " + at_least + ">"
                                         : "shared<" + type + dims + ", " + at_least + ">";
      edits_.push_back(
          {begin, statement_end,
           "[[maybe_unused]] auto& " + name_text + " = ::nanolm::emulator::" + call + "(\"" + name_text + "\")"});
    }
  }
  // How many function bodies and other blocks, namespaces apart, are open at a place.
  int depth_at(Position at) const {
    std::vector<bool> open;  // whether each brace is of a block
    for (Position i = 0; i < at; ++i) {
      if (code_[i] == '}' && !open.empty()) open.pop_back();
      if (code_[i] != '{') continue;
      Position from = i;
      while (from > 0 && std::string(";{}").find(code_[from - 1]) == kNone) --from;
      const std::string head = code_.substr(from, i - from);
      open.push_back(head.find("namespace") == kNone && head.find("extern") == kNone);
    }
    return static_cast<int>(std::count(open.begin(), open.end(), true));
  }

  std::string text_, code_, name_;
  std::vector<Edit> edits_;
};

}  // namespace

int main(int count, char** arguments) {
  if (count != 4) {
    std::cerr << "usage: rewrite IN OUT NAME\n";
    return 2;
  }
  std::ifstream in(arguments[1], std::ios::binary);
  if (!in) {
    std::cerr << arguments[1] << ": cannot be read\n";
    return 1;
  }
  try {
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const std::string result = Rewriter(text, arguments[3]).result();
    std::ofstream out(arguments[2], std::ios::binary);
    out << result;
    out.close();
    if (!out) throw std::runtime_error(std::string(arguments[2]) + ": cannot be written");
  } catch (const std::exception& error) {
    std::cerr << error.what() << "\n";
    return 1;
  }
}
