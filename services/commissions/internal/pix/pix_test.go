package pix

import (
	"strings"
	"testing"

	"partilha.dev/pkg/fault"
)

var all = []Type{CPF, CNPJ, Phone, Email, EVP}

func TestAKeyHasOneSpelling(t *testing.T) {
	for _, row := range []struct {
		kind            Type
		text, canonical string
		masked          string
	}{
		{CPF, "52998224725", "52998224725", "***.982.247-**"},
		{CPF, "529.982.247-25", "52998224725", "***.982.247-**"},
		{CPF, "12345678909", "12345678909", "***.456.789-**"},
		{CPF, "00000000191", "00000000191", "***.000.001-**"},
		{CNPJ, "11222333000181", "11222333000181", "11.***.***/0001-**"},
		{CNPJ, "11.222.333/0001-81", "11222333000181", "11.***.***/0001-**"},
		{CNPJ, "12ABC34501DE35", "12ABC34501DE35", "12.***.***/01DE-**"},
		{CNPJ, "12.abc.345/01de-35", "12ABC34501DE35", "12.***.***/01DE-**"},
		{Phone, "+5511987654321", "+5511987654321", "+55********321"},
		{Phone, "+551133334444", "+551133334444", "+55*******444"},
		{Phone, "+14155550123", "+14155550123", "+14******123"},
		{Phone, "+12345678", "+12345678", "+12***678"},
		{Email, "Ana.Souza+pix@Example.COM.br", "ana.souza+pix@example.com.br", "a***@example.com.br"},
		{Email, "a@b.co", "a@b.co", "a***@b.co"},
		{EVP, "123E4567-E12B-12D1-A456-426655440000", "123e4567-e12b-12d1-a456-426655440000", "123e4567-****-****-****-************"},
		{EVP, "00000000-0000-0000-0000-000000000000", "00000000-0000-0000-0000-000000000000", "00000000-****-****-****-************"},
	} {
		key, err := Parse(row.kind, row.text)
		if err != nil {
			t.Errorf("%s %s: %v", row.kind, row.text, err)
			continue
		}
		if key.Reveal() != row.canonical || key.Type() != row.kind || key.Masked() != row.masked || key.String() != row.masked {
			t.Errorf("%s %s is %s, shown as %s", row.kind, row.text, key.Reveal(), key)
		}
	}
}

func TestWhatIsNoKeyOfItsTypeIsRefusedAtTheMember(t *testing.T) {
	for kind, texts := range map[Type][]string{
		CPF: {"", "5299822472", "529982247250", "52998224725 ", "5299822472a", "52998224724", "52998224752", "５2998224725", "529/982/247/25", "11222333000181", "-----------"},
		CNPJ: {"", "1122233300018", "112223330001810", "11222333000182", "12ABC34501DE3A", "12ABC34501DEA5", "12ABC34501DE53", "12ÃBC4501DE35", "52998224725", "12ABC3450 DE35",
			"12ſBC34501DE35", "A1B2C3D4ıF650", "1ſ2ABC01DE35"},
		Phone: {"", "5511987654321", "+5511", "+0511987654321", "+55 11 98765-4321", "+55(11)987654321", "+1234567", "+1234567890123456", "+550187654321", "+5510987654321",
			"+55119876543210", "+55118765432", "+55119８7654321", "++5511987654321", "+5511987654321\n"},
		Email: {"", "ana", "@b.co", "ana@", "ana@b", "a b@c.co", "ana@b..co", "ana@-b.co", "ana@b-.co", ".ana@b.co", "ana.@b.co", "a..b@c.co", "ana@b.co.", "ana@b.1", "ana@b.co\n", "aña@b.co",
			"=1+1@b.co", "+ana@b.co", "-ana@b.co", `"ana"@b.co`, "ana@[127.0.0.1]", "\u0130@x.com", "\u212a@x.com", "a@\u212aode.com", "ana@b@c.co", "Ana <ana@b.co>", strings.Repeat("a", 65) + "@b.co", strings.Repeat("a", 60) + "@" + strings.Repeat("b", 14) + ".co"},
		EVP: {"", "123e4567e12b12d1a456426655440000", "{123e4567-e12b-12d1-a456-426655440000}", "urn:uuid:123e4567-e12b-12d1-a456-426655440000", "123e4567-e12b-12d1-a456-42665544000g", "52998224725"},
	} {
		for _, text := range texts {
			_, err := Parse(kind, text)
			f := fault.Of(err)
			if f == nil || f.Code != "invalid_body" || len(f.Details) != 1 || f.Details[0].Path != "/pix_key" || f.Details[0].Code != "format" {
				t.Errorf("%s %q: %v", kind, text, err)
				continue
			}
			if len(text) > 6 && strings.Contains(err.Error(), text) {
				t.Errorf("%s %q: the refusal repeats it: %v", kind, text, err)
			}
		}
	}
	if _, err := Parse("cheque", "52998224725"); fault.Of(err) == nil || fault.Of(err).Details[0].Path != "/pix_key_type" {
		t.Errorf("an unknown type: %v", err)
	}
}

// Arithmetic modulo 11 cannot tell characters apart whose values differ by 11, as those of
// some letters and digits do, nor the remainders 0 and 1, both of which give the digit 0:
// such a number is as good as the right one.
func TestEveryWrongCharacterOfATaxNumberIsNoticed(t *testing.T) {
	asGood := map[string]bool{"22345678909": true} // for 12345678909
	for kind, numbers := range map[Type][]string{
		CPF:  {"52998224725", "12345678909", "11144477735", "00000000191"},
		CNPJ: {"11222333000181", "00000000000191", "12ABC34501DE35"},
	} {
		alphabet := digits
		if kind == CNPJ {
			alphabet += capitals
		}
		for _, number := range numbers {
			for i := range len(number) {
				for _, other := range []byte(alphabet) {
					wrong := number[:i] + string(other) + number[i+1:]
					same := (int(other)-int(number[i]))%11 == 0 && (i < len(number)-2 || other == number[i])
					if _, err := Parse(kind, wrong); (err == nil) != (same || asGood[wrong]) {
						t.Errorf("%s %s for %s: %v", kind, wrong, number, err)
					}
				}
			}
		}
	}
}

func TestATaxNumberOfOneCharacterIsNobodys(t *testing.T) {
	for _, character := range digits + capitals {
		for kind, length := range map[Type]int{CPF: 11, CNPJ: 14} {
			if _, err := Parse(kind, strings.Repeat(string(character), length)); err == nil {
				t.Errorf("%s of %c alone is taken", kind, character)
			}
		}
	}
}

// The check digits are computed once more, as the tax office describes them: the
// characters times a row of weights that is written out.
func TestTheCheckDigitsAreThoseOfTheTaxOffice(t *testing.T) {
	for kind, row := range map[Type]struct {
		weights []int
		stems   []string
	}{
		CPF:  {[]int{11, 10, 9, 8, 7, 6, 5, 4, 3, 2}, []string{"111444777", "987654321", "000000001", "999999998"}},
		CNPJ: {[]int{6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2}, []string{"112223330001", "12ABC34501DE", "ZZZZZZZZZZZY", "000000000001", "A1B2C3D4E5F6"}},
	} {
		for _, stem := range row.stems {
			number := stem
			for range 2 {
				sum := 0
				weights := row.weights[len(row.weights)-len(number):]
				for i, weight := range weights {
					sum += weight * (int(number[i]) - 48)
				}
				digit := 0
				if sum%11 >= 2 {
					digit = 11 - sum%11
				}
				number += string(rune('0' + digit))
			}
			if key, err := Parse(kind, number); err != nil || key.Reveal() != number {
				t.Errorf("%s %s: %v", kind, number, err)
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for i, text := range []string{"529.982.247-25", "12ABC34501DE35", "+5511987654321", "Ana@Example.com", "123E4567-E12B-12D1-A456-426655440000"} {
		f.Add(i, text)
	}
	f.Fuzz(func(t *testing.T, kind int, text string) {
		key, err := Parse(all[uint(kind)%uint(len(all))], text)
		if err != nil {
			return
		}
		again, err := Parse(key.Type(), key.Reveal())
		if err != nil || again != key {
			t.Errorf("%q is %q, which is %q, %v", text, key.Reveal(), again.Reveal(), err)
		}
		if masked := key.Masked(); strings.Contains(masked, key.Reveal()) || !strings.Contains(masked, "*") {
			t.Errorf("%q is shown as %q", text, masked)
		}
		if strings.ContainsAny(key.Reveal()[:1], "=-@\t\r\n") || strings.ContainsAny(key.Reveal(), ",\"\r\n") {
			t.Errorf("%q is more than a word to a spreadsheet", key.Reveal())
		}
	})
}
