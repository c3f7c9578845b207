package webhooks

import (
	"os/exec"
	"strings"
	"testing"
)

func TestSignature(t *testing.T) {
	t.Run("agrees with RFC 4231, test case 2", func(t *testing.T) {
		got := sign("Jefe", []byte("what do ya want for nothing?"))
		want := "sha256=5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
		if got != want {
			t.Errorf("sign = %s, want %s", got, want)
		}
	})

	// The digest was computed with openssl, keyed with the text of the secret.
	const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
	const body = `{"event":"partner.created"}`
	const want = "sha256=44bcc73c02aaafa29a218edc149e59e2848840f33dbb553dde2ca3f63f461c39"
	t.Run("is keyed with the secret exactly as shown, prefix included", func(t *testing.T) {
		if got := sign(secret, []byte(body)); got != want {
			t.Errorf("sign = %s, want %s", got, want)
		}
	})

	t.Run("agrees with what a receiver in another language computes", func(t *testing.T) {
		raw := "{\"name\":\"São João 🎉\",\"amount_brl\":10.50}\n\x00\xff"
		verifiers := map[string][]string{
			"python3": {"-c", "import hmac,sys;print(hmac.new(sys.argv[1].encode(),sys.stdin.buffer.read(),'sha256').hexdigest())", secret},
			"openssl": {"dgst", "-sha256", "-r", "-hmac", secret},
		}
		verified := 0
		for tool, args := range verifiers {
			if _, err := exec.LookPath(tool); err != nil {
				continue
			}
			command := exec.Command(tool, args...)
			command.Stdin = strings.NewReader(raw)
			output, err := command.Output()
			if err != nil {
				t.Fatalf("run %s: %v", tool, err)
			}
			if got, want := sign(secret, []byte(raw)), "sha256="+strings.Fields(string(output))[0]; got != want {
				t.Errorf("sign = %s, %s says %s", got, tool, want)
			}
			verified++
		}
		if verified == 0 {
			t.Fatal("neither python3 nor openssl is installed; PostgreSQL's package brings openssl")
		}
	})
}
